#pragma once

#include <cstdint>
#include <string_view>

#include "models/text/template/values/value.h"

/// Comparison of values as in Python.
namespace lathe::jinja {

class Runtime;

/// Returns a == b. Numbers compare by value, whatever their types; lists, tuples and dicts element by element.
bool equal(const Value& a, const Value& b, Budget& budget);

enum class Order : std::uint8_t { less, less_equal, greater, greater_equal };
/// Returns the result of a < b, .... Throws Failure [template_operation] for values without an order.
bool ordered(Order order, const Value& a, const Value& b, Budget& budget);

/// Returns a hash that is the same for equal values. Throws Failure [template_operation] for lists and dicts.
std::uint64_t hash_of(const Value& value, Budget& budget);
std::uint64_t hash_of(std::string_view text);

/// Python's bool(value).
bool truth(Runtime& runtime, const Value& value);

/// Returns `item in container`. Throws Failure [template_operation] where Python raises TypeError.
bool contains(Runtime& runtime, const Value& container, const Value& item);

}  // namespace lathe::jinja
