#include <fmt/core.h>

#include <cmath>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/filters.h"
#include "models/text/template/library/numbers.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/value_arithmetic.h"

/// Filters that return numbers.
namespace lathe::jinja {

namespace {

Value absolute(Runtime&, const Value& subject, const Arguments& given) {
  const Bound none("abs", given, {});
  if (!subject.is_number()) fail_operation(fmt::format("bad operand type for abs(): '{}'", type_name(subject)));
  if (!subject.is_integer()) return std::abs(subject.real());
  return subject.integer() < 0 ? unary(UnaryOp::minus, subject) : Value(subject.integer());
}

Value round(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("round", given, {"precision?", "method?"});
  const std::string method = bound.has(1) ? bound.string(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail_operation("method must be common, ceil or floor");
  const std::int64_t digits = bound.integer(0, 0);
  if (method == "common") {
    if (!subject.is_number())
      fail_operation(fmt::format("type {} doesn't define __round__ method", type_name(subject)));
    return round_number(subject, digits);
  }
  const Value unit = binary(runtime, BinaryOp::power, 10, digits);
  const Value scaled = binary(runtime, BinaryOp::multiply, subject, unit);
  if (!scaled.is_number()) fail_operation(fmt::format("must be real number, not {}", type_name(scaled)));
  if (std::isnan(scaled.real())) fail_operation("cannot convert float NaN to integer");
  if (std::isinf(scaled.real())) fail_operation("cannot convert float infinity to integer");
  const double whole = method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
  return (whole + 0.0) / unit.real();  // adding 0.0 removes -0, because Python has an integer here
}

Value to_integer(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("int", given, {"default?", "base?"});
  require_defined(subject);
  const Value otherwise = bound.get(0, 0);
  if (subject.is_integer()) return subject.integer();
  std::optional<double> number;
  if (subject.is_string()) {
    runtime.budget().spend_reading(subject.string().size());
    if (const auto integer = parse_integer(subject.string(), bound.integer(1, 10))) return *integer;
    number = parse_real(subject.string());
  } else if (subject.is(Kind::real)) {
    number = subject.real();
  }
  return number && std::isfinite(*number) ? Value(truncate_to_integer(*number)) : otherwise;
}

Value to_real(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("float", given, {"default?"});
  require_defined(subject);
  if (subject.is_number()) return subject.real();
  if (subject.is_string()) {
    runtime.budget().spend_reading(subject.string().size());
    if (const auto number = parse_real(subject.string())) return *number;
  }
  return bound.get(0, 0.0);
}

}  // namespace

std::span<const FilterEntry> number_filters() {
  static constexpr FilterEntry entries[] = {
      {"abs", absolute}, {"float", to_real}, {"int", to_integer}, {"round", round}};
  return entries;
}

}  // namespace lathe::jinja
