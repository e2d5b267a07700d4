#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ir/ops/functional/functional_composites.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

namespace {
const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("arithmetic on floats, both operands broadcast") {
  Interpreted t;
  const Value a = t.input({2, 1}, {1, 2}), b = t.input({3}, {10, 20, 30});
  CHECK(add(a, b).shape() == Shape{2, 3});
  CHECK(t.numbers(add(a, b)) == Numbers{11, 21, 31, 12, 22, 32});
  CHECK(t.numbers(sub(a, b)) == Numbers{-9, -19, -29, -8, -18, -28});
  CHECK(t.numbers(mul(b, a)) == Numbers{10, 20, 30, 20, 40, 60});
  CHECK(t.numbers(div(b, a)) == Numbers{10, 20, 30, 5, 10, 15});
  CHECK(t.numbers(sub(1.0, a)) == Numbers{0, -1});
  CHECK(t.numbers(pow(b, 2.0)) == Numbers{100, 400, 900});
  CHECK(t.numbers(maximum(a, 1.5)) == Numbers{1.5, 2});
}

TEST_CASE("integers are exact and wrap, and division truncates and never traps") {
  Interpreted t;
  const std::int64_t big = (std::int64_t{1} << 53) + 1, low = std::numeric_limits<std::int64_t>::min();
  const Value a = t.input(HostTensor::from_ints({4}, {big, -7, low, 5}));
  const Value b = t.input(HostTensor::from_ints({4}, {1, 2, -1, 0}));
  CHECK(t.run(add(a, b)).get_int(0) == big + 1);
  CHECK(t.run(div(a, b)).same_bits(HostTensor::from_ints({4}, {big, -3, low, 0})));
  CHECK(t.run(rem(a, b)).same_bits(HostTensor::from_ints({4}, {0, -1, 0, 0})));
  const Value narrow = t.input(HostTensor::from_ints({1}, {2147483647}, i32));
  CHECK(t.run(add(narrow, 1.0)).get_int(0) == -2147483648LL);
}

TEST_CASE("bits of integers: masks, and shifts by any count") {
  Interpreted t;
  using Integers = std::vector<std::int64_t>;
  const std::int64_t low = std::numeric_limits<std::int64_t>::min(), odd = (std::int64_t{1} << 53) + 1;
  const auto integers = [&](const Value& value) {
    const HostTensor tensor = t.run(value);
    Integers result;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) result.push_back(tensor.get_int(i));
    return result;
  };
  const Value a = t.input(HostTensor::from_ints({4}, {12, -7, low, odd}));
  const Value b = t.input(HostTensor::from_ints({4}, {10, 3, -1, odd - 1}));
  CHECK(integers(bitwise_and(a, b)) == Integers{8, 1, low, odd - 1});
  CHECK(integers(bitwise_or(a, b)) == Integers{14, -5, -1, odd});
  CHECK(integers(bitwise_xor(a, b)) == Integers{6, -6, -1 - low, 1});
  CHECK(integers(bitwise_not(a)) == Integers{-13, 6, -1 - low, -1 - odd});
  const Value by = t.input(HostTensor::from_ints({4}, {2, 1, 63, 64}));
  CHECK(integers(shift_left(a, by)) == Integers{48, -14, 0, 0});
  CHECK(integers(shift_right(a, by)) == Integers{3, -4, -1, 0});
  CHECK(integers(shift_right_logical(a, by)) == Integers{3, std::numeric_limits<std::int64_t>::max() - 3, 1, 0});
  const Value narrow = t.input(HostTensor::from_ints({4}, {-8, -8, 1, -1}, i32));
  const Value count = t.input(HostTensor::from_ints({4}, {1, 32, 31, -1}, i32));
  CHECK(integers(shift_right_logical(narrow, count)) == Integers{2147483644, 0, 0, 0});
  CHECK(integers(shift_right(narrow, count)) == Integers{-4, -1, 0, -1});
  CHECK(integers(shift_left(narrow, count)) == Integers{-16, 0, -2147483648LL, 0});
  CHECK(error_label([&] { shift_left(t.input({1}, {1}), t.input({1}, {1})); }) == "dtype_kind");
}

TEST_CASE("minimum, maximum, sign and rounding of special values") {
  Interpreted t;
  const Value a = t.input({4}, {not_a_number, 1, -infinity, 2}), b = t.input({4}, {0, not_a_number, 3, 2});
  const Numbers low = t.numbers(minimum(a, b)), high = t.numbers(maximum(a, b));
  CHECK(std::isnan(low[0]));
  CHECK(std::isnan(high[1]));
  CHECK(low[2] == -infinity);
  CHECK(high[3] == 2);
  const Value x = t.input({5}, {-2.5, -0.5, 0.5, 1.5, 2.5});
  CHECK(t.numbers(round(x)) == Numbers{-2, 0, 0, 2, 2});
  CHECK(t.numbers(floor(x)) == Numbers{-3, -1, 0, 1, 2});
  CHECK(t.numbers(sign(x)) == Numbers{-1, -1, 1, 1, 1});
  CHECK(t.numbers(abs(x)) == Numbers{2.5, 0.5, 0.5, 1.5, 2.5});
  CHECK(std::isnan(t.numbers(sign(a))[0]));
}

TEST_CASE("transcendental functions at known points") {
  Interpreted t;
  const Value x = t.input({2}, {0.25, 4});
  CHECK(t.numbers(exp(x))[0] == Approx(1.2840254166877414).epsilon(1e-15));
  CHECK(t.numbers(log(x))[1] == Approx(1.3862943611198906).epsilon(1e-15));
  CHECK(t.numbers(sqrt(x)) == Numbers{0.5, 2});
  CHECK(t.numbers(rsqrt(x)) == Numbers{2, 0.5});
  CHECK(t.numbers(sin(x))[0] == Approx(0.24740395925452294).epsilon(1e-15));
  CHECK(t.numbers(cos(x))[0] == Approx(0.9689124217106447).epsilon(1e-15));
  CHECK(t.numbers(tanh(x))[0] == Approx(0.24491866240370913).epsilon(1e-15));
  CHECK(t.numbers(erf(x))[0] == Approx(0.27632639016823696).epsilon(1e-15));
}

TEST_CASE("comparisons and logic") {
  Interpreted t;
  const Value a = t.input({3}, {1, 2, not_a_number}), b = t.input({3}, {2, 2, not_a_number});
  CHECK(t.run(eq(a, b)).dtype() == boolean);
  CHECK(t.numbers(eq(a, b)) == Numbers{0, 1, 0});
  CHECK(t.numbers(ne(a, b)) == Numbers{1, 0, 1});
  CHECK(t.numbers(lt(a, b)) == Numbers{1, 0, 0});
  CHECK(t.numbers(le(a, b)) == Numbers{1, 1, 0});
  CHECK(t.numbers(gt(b, a)) == Numbers{1, 0, 0});
  CHECK(t.numbers(ge(a, 2.0)) == Numbers{0, 1, 0});
  const Value p = t.input({4}, {0, 0, 1, 1}, boolean), q = t.input({4}, {0, 1, 0, 1}, boolean);
  CHECK(t.numbers(logical_and(p, q)) == Numbers{0, 0, 0, 1});
  CHECK(t.numbers(logical_or(p, q)) == Numbers{0, 1, 1, 1});
  CHECK(t.numbers(logical_not(p)) == Numbers{1, 1, 0, 0});
  CHECK(t.numbers(eq(p, 0.0)) == Numbers{1, 1, 0, 0});
}

TEST_CASE("where selects and never mixes: the other operand may be NaN") {
  Interpreted t;
  const Value c = t.input({2, 1}, {1, 0}, boolean), a = t.input({2}, {1, 2});
  CHECK(t.numbers(where(c, a, -1e9)) == Numbers{1, 2, -1e9, -1e9});
  CHECK(t.numbers(where(logical_not(c), not_a_number, a))[0] == 1);
  const Value i = t.input(HostTensor::from_ints({2}, {9007199254740993, 5}));
  CHECK(t.run(where(c, i, 0.0)).get_int(0) == 9007199254740993);
}

TEST_CASE("casts truncate, saturate and round") {
  Interpreted t;
  const Value x = t.input({5}, {-1.9, 2.9, not_a_number, 3e9, 1.0039});
  CHECK(t.numbers(cast(x, i32)) == Numbers{-1, 2, 0, 2147483647, 1});
  CHECK(t.numbers(cast(x, i64)) == Numbers{-1, 2, 0, 3e9, 1});
  CHECK(t.numbers(cast(t.input({3}, {0, 0.5, -1}), boolean)) == Numbers{0, 1, 1});
  CHECK(t.numbers(cast(x, bf16))[4] == 1.0);
  CHECK(cast(x, f64).id() == x.id());
}

TEST_CASE("bytes support casts, comparisons and views but not arithmetic") {
  Interpreted t;
  const Value x = t.input({6}, {-300, -1.9, 2.9, not_a_number, 200, 300});
  CHECK(t.numbers(cast(x, i8)) == Numbers{-128, -1, 2, 0, 127, 127});
  CHECK(t.numbers(cast(x, u8)) == Numbers{0, 0, 2, 0, 200, 255});
  const Value whole = t.input(HostTensor::from_ints({4}, {-129, -1, 200, 256}));
  CHECK(t.numbers(cast(whole, i8)) == Numbers{127, -1, -56, 0});
  CHECK(t.numbers(cast(whole, u8)) == Numbers{127, 255, 200, 0});
  const Value a = t.input({3}, {-128, 0, 5}, i8), b = t.input({3}, {127, 0, -5}, i8);
  CHECK(t.run(a).dtype() == i8);
  CHECK(t.numbers(lt(a, b)) == Numbers{1, 0, 0});
  CHECK(t.numbers(ne(a, 0.0)) == Numbers{1, 0, 1});
  CHECK(t.numbers(where(lt(a, b), a, b)) == Numbers{-128, 0, -5});
  CHECK(t.numbers(cast(a, u8)) == Numbers{128, 0, 5});
  CHECK(t.numbers(cast(cast(b, u8), f32)) == Numbers{127, 0, 251});
  std::string text;
  CHECK(error_label([&] { add(a, b); }, &text) == "dtype_kind");
  CHECK(text.find("x.to(f32)") != std::string::npos);
  CHECK(error_label([&] { sum(a); }) == "dtype_kind");
  CHECK(error_label([&] { lt(a, t.input({3}, {1, 2, 3}, u8)); }) == "dtype_match");
  CHECK(error_label([&] { constant(t.builder, 128, i8); }) == "constant_value");
}

TEST_CASE("element-wise errors name shapes, label and hint") {
  Interpreted t;
  const GraphBuilder::At at(t.builder, Location("mha.cpp", 14));
  const Dim h("h", 8), k("k", 7);
  const Value a = t.builder.argument(ops::input, "scores", f32, {Dim("B"), h});
  const Value b = t.builder.argument(ops::input, "bias", f32, {k});
  std::string text;
  CHECK(error_label([&] { add(a, b); }, &text) == "broadcast");
  CHECK(text ==
        "mha.cpp:14: add: scores: f32[B, h=8] and bias: f32[k=7] do not broadcast: h=8 against k=7 in dim -1"
        "  [broadcast]\n  sizes aligned from the last dim must be equal or 1; unsqueeze inserts a dim of size 1");
  const Value wide = t.builder.argument(ops::input, "wide", f64, {h});
  CHECK(error_label([&] { mul(a, wide); }, &text) == "dtype_match");
  CHECK(text.find("x.to(f32)") != std::string::npos);
  CHECK(error_label([&] { logical_not(a); }) == "dtype_kind");
  CHECK(error_label([&] { exp(lt(a, a)); }) == "dtype_kind");
  CHECK(error_label([&] { rem(a, a); }) == "dtype_kind");
  CHECK(error_label([&] { where(a, a, a); }) == "dtype_kind");
  CHECK(error_label([&] { cast(a, c64); }) == "cast_complex");
  CHECK(error_label([&] { t.builder.add(ops::add, {a}); }) == "op_arity");
}

TEST_CASE("two unknown dims are compared when the sizes are bound") {
  Interpreted t;
  const Value a = t.input(HostTensor::from({2}, {1, 2}, f64), {Dim("n")});
  const Value b = t.input(HostTensor::from({3}, {1, 2, 3}, f64), {Dim("m")});
  const Value c = add(a, b);
  REQUIRE(t.builder.graph().checks.size() == 1);
  std::string text;
  CHECK(error_label([&] { t.run(c); }, &text) == "broadcast");
  CHECK(text.find("in this run m=3, n=2, so 2 differs from 3") != std::string::npos);
}
