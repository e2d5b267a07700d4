#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/text/template/values/value.h"

/// How Python compares values.
namespace lathe::jinja {

class Runtime;

/// a == b: numbers by value, whatever their type; lists, tuples and dicts element by element.
bool equal(const Value& a, const Value& b, Budget& budget);

enum class Order : std::uint8_t { less, less_equal, greater, greater_equal };
/// a < b, ... Failure [template_operation] for values that have no order.
bool ordered(Order order, const Value& a, const Value& b, Budget& budget);

/// The same for equal values. Failure [template_operation] for lists and dicts.
std::uint64_t hash_of(const Value& value, Budget& budget);
std::uint64_t hash_of(std::string_view text);

/// Python's bool(value).
bool truth(Runtime& runtime, const Value& value);

/// `item in container`. Failure [template_operation] where Python has a TypeError.
bool contains(Runtime& runtime, const Value& container, const Value& item);

}  // namespace lathe::jinja
