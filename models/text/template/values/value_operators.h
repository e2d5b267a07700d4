#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/text/template/values/object.h"
#include "models/text/template/values/value.h"

/// Comparison of values as in Python.
///
/// Python's operators on values. They throw Failure [template_operation] for types that do not match,
/// [template_limit] for integers beyond 64 bits.
namespace lathe::jinja {

class Runtime;

/// Returns whether no template can observe a difference between two values: they have the same types and contents.
/// Returns false for objects, unless both values share the list or dict that holds them. Returns false for views,
/// unless they have the same items of the same list.
bool identical(const Value& a, const Value& b);

/// Returns whether the value contains an object.
bool holds_object(const Value& value);

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

enum class BinaryOp : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class UnaryOp : std::uint8_t { plus, minus };

Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b);
Value unary(UnaryOp op, const Value& value);

/// Returns a ~ b ~ ...: the concatenated texts of the values.
Value concatenate(Runtime& runtime, const std::vector<Value>& values);

/// Returns `text` repeated `count` times; empty if `count` is below 1.
std::string repeat(Runtime& runtime, std::string_view text, std::int64_t count);
/// Replaces the five special characters of HTML by entities.
std::string escape_html(std::string_view text);

/// Truncates a float to a 64-bit integer. Throws Failure [template_operation] for nan and inf.
std::int64_t truncate_to_integer(double value);
/// Returns Python's round(value, digits).
Value round_number(const Value& number, std::int64_t digits);

}  // namespace lathe::jinja
