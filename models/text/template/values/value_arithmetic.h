#pragma once

#include <cstdint>
#include <string>

#include "models/text/template/values/object.h"

/// Python's operators on values. They throw Failure [template_operation] for types that do not match,
/// [template_limit] for integers beyond 64 bits.
namespace lathe::jinja {

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
