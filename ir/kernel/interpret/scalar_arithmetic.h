#pragma once

#include <cmath>
#include <cstdint>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/support/error.h"

/// The definitions behind evaluate() of scalar_eval.h. They are always inlined, so that a caller with a constant op
/// and dtype gets the code of this operation alone.
namespace lathe::kernel {

[[gnu::always_inline]] inline std::int64_t wrap_inline(DType dtype, std::int64_t value) {
  if (dtype == i32) return static_cast<std::int32_t>(value);
  if (dtype == i8) return static_cast<std::int8_t>(value);
  if (dtype == u8) return static_cast<std::uint8_t>(value);
  if (dtype == boolean) return value != 0;
  return value;
}

[[gnu::always_inline]] inline std::int64_t wrap_shift(DType dtype, std::int64_t value, std::int64_t amount,
                                                      bool left) {
  const int width = dtype == i32 ? 32 : 64;
  if (amount < 0 || amount >= width) return 0;
  const auto bits = dtype == i32 ? static_cast<std::uint32_t>(value) : static_cast<std::uint64_t>(value);
  return wrap_inline(dtype, static_cast<std::int64_t>(left ? bits << amount : bits >> amount));
}

[[gnu::always_inline]] inline std::int64_t divide(std::int64_t a, std::int64_t b, bool remainder) {
  if (b == 0) return 0;
  if (b == -1) return remainder ? 0 : static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  return remainder ? a % b : a / b;
}

[[gnu::always_inline]] inline std::int64_t evaluate_integer(ScalarOp op, DType dtype, std::int64_t a,
                                                            std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  const auto wrap = [&](std::uint64_t v) { return wrap_inline(dtype, static_cast<std::int64_t>(v)); };
  switch (op) {
    case ScalarOp::add: return wrap(ua + ub);
    case ScalarOp::sub: return wrap(ua - ub);
    case ScalarOp::mul: return wrap(ua * ub);
    case ScalarOp::div: return wrap_inline(dtype, divide(a, b, false));
    case ScalarOp::rem: return divide(a, b, true);
    case ScalarOp::min: return a < b ? a : b;
    case ScalarOp::max: return a > b ? a : b;
    case ScalarOp::neg: return wrap(0 - ua);
    case ScalarOp::abs: return a < 0 ? wrap(0 - ua) : a;
    case ScalarOp::sign: return (a > 0) - (a < 0);
    case ScalarOp::eq: return a == b;
    case ScalarOp::ne: return a != b;
    case ScalarOp::lt: return a < b;
    case ScalarOp::le: return a <= b;
    case ScalarOp::logical_and:
    case ScalarOp::bit_and: return a & b;
    case ScalarOp::logical_or:
    case ScalarOp::bit_or: return a | b;
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::bit_xor: return a ^ b;
    case ScalarOp::shift_left: return wrap_shift(dtype, a, b, true);
    case ScalarOp::shift_right: return wrap_shift(dtype, a, b, false);
    default: throw InternalError("this scalar op is not defined on integers");
  }
}

template <class T>
[[gnu::always_inline]] inline T evaluate_float(ScalarOp op, T a, T b) {
  const auto once = [](double v) { return static_cast<T>(v); };
  const double x = a, y = b;
  switch (op) {
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::min: return std::isnan(a) ? a : a < b ? a : b;
    case ScalarOp::max: return std::isnan(a) ? a : a > b ? a : b;
    case ScalarOp::pow: return once(std::pow(x, y));
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::fabs(a);
    case ScalarOp::sign: return a > 0 ? T(1) : a < 0 ? T(-1) : a;
    case ScalarOp::floor: return std::floor(a);
    case ScalarOp::round: return std::nearbyint(a);
    case ScalarOp::exp: return once(std::exp(x));
    case ScalarOp::log: return once(std::log(x));
    case ScalarOp::sqrt: return std::sqrt(a);
    case ScalarOp::rsqrt: return T(1) / std::sqrt(a);
    case ScalarOp::sin: return once(std::sin(x));
    case ScalarOp::cos: return once(std::cos(x));
    case ScalarOp::tanh: return once(std::tanh(x));
    case ScalarOp::erf: return once(std::erf(x));
    default: throw InternalError("this scalar op does not give a float");
  }
}

[[gnu::always_inline]] inline bool compare_floats(ScalarOp op, double a, double b) {
  if (op == ScalarOp::eq) return a == b;
  if (op == ScalarOp::ne) return a != b;
  return op == ScalarOp::lt ? a < b : a <= b;
}

[[gnu::always_inline]] inline Scalar evaluate_inline(ScalarOp op, DType dtype, Scalar a, Scalar b, Scalar c) {
  if (op == ScalarOp::select) return a.integer ? b : c;
  const bool floats = dtype == f64 || dtype == f32 || dtype == bf16 || dtype == f16;
  if (!floats) return {.integer = evaluate_integer(op, dtype, a.integer, b.integer)};
  const bool compares = op == ScalarOp::eq || op == ScalarOp::ne || op == ScalarOp::lt || op == ScalarOp::le;
  if (compares) return {.integer = compare_floats(op, a.real, b.real)};
  if (dtype == f64) return {.real = evaluate_float<double>(op, a.real, b.real)};
  return {.real = evaluate_float<float>(op, static_cast<float>(a.real), static_cast<float>(b.real))};
}

[[gnu::always_inline]] inline Scalar fma_inline(DType dtype, Scalar a, Scalar b, Scalar c) {
  if (dtype == f64) return {.real = std::fma(a.real, b.real, c.real)};
  return {.real = std::fma(static_cast<float>(a.real), static_cast<float>(b.real), static_cast<float>(c.real))};
}

}  // namespace lathe::kernel
