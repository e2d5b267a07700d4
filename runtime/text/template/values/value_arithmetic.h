#pragma once

#include <cstdint>
#include <string>

#include "runtime/text/template/values/object.h"

/// The operators of Python on values. Failure [template_operation] for types that do not go together,
/// [template_limit] for integers beyond 64 bits.
namespace lathe::jinja {

enum class BinaryOp : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class UnaryOp : std::uint8_t { plus, minus };

Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b);
Value unary(UnaryOp op, const Value& value);

/// a ~ b ~ ..: the texts of values in one.
Value concatenate(Runtime& runtime, const std::vector<Value>& values);

/// `text` times `count`, empty below 1.
std::string repeat(Runtime& runtime, std::string_view text, std::int64_t count);
/// The five characters that mean something in HTML, as entities.
std::string escape_html(std::string_view text);

/// An integer of 64 bits from a float, truncated. Failure [template_operation] for nan and inf.
std::int64_t truncate_to_integer(double value);
/// Python's round(value, digits).
Value round_number(const Value& number, std::int64_t digits);

}  // namespace lathe::jinja
