#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ir/kernel/interpret/scalar_eval.h"

using namespace lathe;
using namespace lathe::kernel;

namespace {

std::int64_t integer(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b) {
  const Scalar args[] = {{.integer = a}, {.integer = b}};
  return evaluate(op, dtype, args).integer;
}

double real(ScalarOp op, double a, double b) {
  const Scalar args[] = {{.real = a}, {.real = b}};
  return evaluate(op, f32, args).real;
}

}  // namespace

TEST_CASE("integers wrap and never trap") {
  const std::int64_t low = std::numeric_limits<std::int64_t>::min();
  const std::int64_t low32 = std::numeric_limits<std::int32_t>::min();
  CHECK(integer(ScalarOp::div, i64, low, -1) == low);
  CHECK(integer(ScalarOp::div, i32, low32, -1) == low32);
  CHECK(integer(ScalarOp::rem, i64, low, -1) == 0);
  CHECK(integer(ScalarOp::div, i64, 5, 0) == 0);
  CHECK(integer(ScalarOp::rem, i64, 5, 0) == 0);
  CHECK(integer(ScalarOp::div, i64, -7, 2) == -3);
  CHECK(integer(ScalarOp::rem, i64, -7, 2) == -1);
  CHECK(integer(ScalarOp::add, i32, 0x7fffffff, 1) == low32);
  CHECK(integer(ScalarOp::shift_right, i32, -1, 28) == 15);
  CHECK(integer(ScalarOp::shift_left, i64, 1, 64) == 0);
  CHECK(integer(ScalarOp::shift_left, i32, 1, -1) == 0);
}

TEST_CASE("min and max propagate NaN from either operand") {
  const double nan = std::nan("");
  for (const ScalarOp op : {ScalarOp::min, ScalarOp::max}) {
    CHECK(std::isnan(real(op, nan, 1)));
    CHECK(std::isnan(real(op, 1, nan)));
    CHECK(std::signbit(real(op, 0.0, -0.0)));
  }
  CHECK(std::isnan(real(ScalarOp::sign, nan, 0)));
  CHECK(real(ScalarOp::round, 2.5, 0) == 2);
}

TEST_CASE("casts saturate and round to nearest even") {
  CHECK(evaluate_cast(f64, i32, {.real = 3e9}).integer == std::numeric_limits<std::int32_t>::max());
  CHECK(evaluate_cast(f64, i64, {.real = -1e300}).integer == std::numeric_limits<std::int64_t>::min());
  CHECK(evaluate_cast(f32, i64, {.real = std::nan("")}).integer == 0);
  CHECK(evaluate_cast(f32, i32, {.real = -2.9}).integer == -2);
  CHECK(evaluate_cast(i64, i32, {.integer = (std::int64_t{1} << 32) + 5}).integer == 5);
  CHECK(evaluate_cast(f32, boolean, {.real = 0.25}).integer == 1);
  CHECK(bf16_bits(1.00390625f) == 0x3f80);  // ties round to even
  CHECK(bf16_bits(1.01171875f) == 0x3f82);
  CHECK(bf16_bits(std::nanf("")) == 0x7fc0);
  CHECK(bf16_bits(std::bit_cast<float>(0x7f800001u)) == 0x7fc0);
  CHECK(bf16_bits(3.4e38f) == 0x7f80);
  CHECK(bf16_bits(1e-40f) == 0x0001);
}

TEST_CASE("f64 and integers round once to every float type") {
  CHECK(round_to(bf16, 1.0039062500009095) == 1.0078125);
  CHECK(round_to(bf16, -4.5917748124e-41) == -0x1p-133);
  CHECK(round_to(bf16, 3.3961775e38) == 0x1.fep127);
  CHECK(round_to(f16, 1.0004882812509095) == 1.0009765625);
  CHECK(round_to(f16, 2.9802322417e-08) == 0x1p-24);
  CHECK(round_to(f16, 65519.999999999) == 65504);
  CHECK(round_to(f16, -1e300) == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(round_to(bf16, std::nan(""))));
  const std::int64_t above = (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1;
  CHECK(round_to(bf16, above) == 0x1.02p60);
  CHECK(round_to(bf16, -above) == -0x1.02p60);
  CHECK(round_to(bf16, above - 1) == 0x1p60);
  CHECK(round_to(f16, std::int64_t{65519}) == 65504);
  CHECK(round_to(f16, std::int64_t{65520}) == std::numeric_limits<double>::infinity());
  CHECK(round_to(f32, (std::int64_t{1} << 54) + (std::int64_t{1} << 30) + 1) == 0x1.000002p54);
  CHECK(round_to(bf16, std::numeric_limits<std::int64_t>::min()) == -0x1p63);
}

TEST_CASE("every f16 value round-trips through f32") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_value(half);
    if (std::isnan(value))
      CHECK((f16_bits(value) & 0x7e00) == 0x7e00);
    else if (f16_bits(value) != half)
      FAIL(bits);
  }
  CHECK(f16_bits(65519.0f) == 0x7bff);
  CHECK(f16_bits(65520.0f) == 0x7c00);
  CHECK(f16_bits(0x1p-25f) == 0);
  CHECK(f16_bits(0x1.8p-25f) == 1);
  CHECK(f16_bits(0x1.ffcp-15f) == 0x0400);
}
