#include <catch2/catch.hpp>
#include <cmath>

#include "ir/ops/functional/functional_composites.h"
#include "ir/support/numbers/philox.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;
using Complexes = std::vector<std::complex<double>>;

TEST_CASE("constants: splat, list, complex") {
  Interpreted t;
  CHECK(t.numbers(constant(t.builder, 2.5, f64)) == Numbers{2.5});
  CHECK(t.numbers(full(t.builder, {2, 2}, 3, i32)) == Numbers{3, 3, 3, 3});
  CHECK(t.numbers(literal(t.builder, {3}, {1, 2, 3}, f32)) == Numbers{1, 2, 3});
  CHECK(t.complexes(literal(t.builder, {2}, {1, 2, 3, 4}, c128)) == Complexes{{1, 2}, {3, 4}});
  CHECK(t.complexes(literal(t.builder, {2}, {1}, c64)) == Complexes{1, 1});
  CHECK(error_label([&] { literal(t.builder, {3}, {1, 2}, f32); }) == "constant_count");
  CHECK(error_label([&] { literal(t.builder, {Dim("n")}, {1, 2}, f32); }) == "constant_count");
  CHECK(error_label([&] { constant(t.builder, 0.5, i64); }) == "constant_value");
  CHECK(error_label([&] { constant(t.builder, 3e9, i32); }) == "constant_value");
  CHECK(error_label([&] { constant(t.builder, 2, boolean); }) == "constant_value");
  CHECK(error_label([&] { literal(t.builder, {-2}, {1}, f32); }) == "dim_negative");
}

TEST_CASE("an integer attribute is exact over the whole i64 range") {
  Interpreted t;
  constexpr std::int64_t lowest = INT64_MIN, highest = INT64_MAX, odd = (std::int64_t{1} << 53) + 1;
  const auto integers = [&](const Value& value) {
    const HostTensor tensor = t.run(value);
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) result.push_back(tensor.get_int(i));
    return result;
  };
  using Integers = std::vector<std::int64_t>;
  CHECK(integers(literal(t.builder, {4}, {odd, -odd - 2, lowest, highest}, i64)) ==
        Integers{odd, -odd - 2, lowest, highest});
  CHECK(integers(full(t.builder, {2}, odd, i64)) == Integers{odd, odd});
  const Value x = t.input(HostTensor::from_ints({4}, {lowest, odd, odd - 1, highest}));
  CHECK(integers(masked_fill(x, eq(x, odd), highest - 1)) == Integers{lowest, highest - 1, odd - 1, highest});
  CHECK(integers(clamp(x, odd, highest - 1)) == Integers{odd, odd, odd, highest - 1});
  CHECK(integers(sub(x, odd)) == Integers{highest - odd + 1, 0, -1, highest - odd});
  CHECK(t.numbers(lt(x, odd)) == Numbers{1, 0, 1, 0});
  CHECK(t.numbers(ge(x, lowest + 1)) == Numbers{0, 1, 1, 1});
  CHECK(integers(where(ne(x, odd), x, odd + 2)) == Integers{lowest, odd + 2, odd - 1, highest});
  CHECK(error_label([&] { constant(t.builder, 0x1p63, i64); }) == "constant_value");
  CHECK(error_label([&] { masked_fill(x, eq(x, x), 0x1p63); }) == "masked_fill_value");
  CHECK(error_label([&] { constant(t.builder, highest, i32); }) == "constant_value");
}

TEST_CASE("a constant of a 16-bit float is the rounded number, with and without rounding of values") {
  Interpreted t;
  for (const bool round : {true, false}) {
    CHECK(t.run(constant(t.builder, 0.1, bf16), {.round = round}).get(0) == 0.10009765625);
    CHECK(t.run(constant(t.builder, 0.1, f16), {.round = round}).get(0) == 0.0999755859375);
  }
}

TEST_CASE("iota counts along one dim") {
  Interpreted t;
  CHECK(t.numbers(iota(t.builder, {2, 3}, 1, i64)) == Numbers{0, 1, 2, 0, 1, 2});
  CHECK(t.numbers(iota(t.builder, {2, 3}, -2, f32)) == Numbers{0, 0, 0, 1, 1, 1});
  CHECK(error_label([&] { iota(t.builder, {2}, 1, i64); }) == "dim_range");
  CHECK(error_label([&] { iota(t.builder, {2}, 0, boolean); }) == "dtype_kind");
}

TEST_CASE("random_uniform is word 0 of Philox, keyed by seed, stream, step and element") {
  Interpreted t;
  const std::int64_t seed = 0x123456789abcdef, step = 0x1'00000007;
  const Value state = t.input(HostTensor::from_ints({2}, {seed, step}));
  const Numbers drawn = t.numbers(random_uniform(state, {2, 3}, f32, 5));
  const PhiloxKey key = {0x89abcdefu ^ (5u * 0x9E3779B9u), 0x01234567u};
  for (std::uint32_t i = 0; i < 6; ++i) {
    const auto word = philox({i, 0, 7, 1}, key)[0];
    CHECK(drawn[i] == std::ldexp(static_cast<double>(word >> 8), -24));
  }
  CHECK(t.numbers(random_uniform(state, {2, 3}, f64, 5)) == drawn);
  CHECK(t.numbers(random_uniform(state, {2, 3}, f32, 6)) != drawn);
  for (const double u : t.numbers(random_uniform(state, {1000}, bf16, 0))) CHECK(u < 1.0);
  CHECK(error_label([&] { random_uniform(t.input({2}, {0, 0}), {2}, f32, 0); }) == "random_state");
  CHECK(error_label([&] { random_uniform(state, {2}, i32, 0); }) == "dtype_kind");
}

TEST_CASE("random_normal has the moments of a normal distribution") {
  Interpreted t;
  const Value state = t.input(HostTensor::from_ints({2}, {42, 0}));
  double sum = 0, squares = 0;
  const Numbers drawn = t.numbers(random_normal(state, {20000}, f32));
  for (const double x : drawn) {
    sum += x;
    squares += x * x;
  }
  CHECK(std::fabs(sum / 20000) < 0.03);
  CHECK(std::fabs(squares / 20000 - 1) < 0.04);
}

TEST_CASE("complex numbers") {
  Interpreted t;
  const Value pairs = t.input({2, 2}, {1, 2, 3, -1});
  const Value z = view_as_complex(pairs);
  CHECK(z.dtype() == c128);
  CHECK(z.shape() == Shape{2});
  CHECK(t.complexes(z) == Complexes{{1, 2}, {3, -1}});
  CHECK(t.numbers(view_as_real(z)) == Numbers{1, 2, 3, -1});
  CHECK(t.complexes(mul(z, z)) == Complexes{{-3, 4}, {8, -6}});
  CHECK(t.complexes(add(z, conj(z))) == Complexes{2, 6});
  CHECK(t.complexes(neg(sub(z, z))) == Complexes{0, 0});
  CHECK(t.numbers(eq(z, conj(conj(z)))) == Numbers{1, 1});
  CHECK(t.complexes(sum(z)) == Complexes{{4, 1}});
  const Value rotated = polar(t.input({2, 1}, {1, 2}), t.input({2}, {0, std::acos(-1) / 2}));
  CHECK(rotated.shape() == Shape{2, 2});
  CHECK(std::abs(t.complexes(rotated)[3] - std::complex<double>(0, 2)) < 1e-15);
  CHECK(view_as_complex(cast(pairs, f32)).dtype() == c64);
  CHECK(error_label([&] { view_as_complex(cast(pairs, bf16)); }) == "dtype_kind");
  CHECK(error_label([&] { view_as_complex(t.input({3}, {1, 2, 3})); }) == "complex_pair");
  CHECK(error_label([&] { view_as_complex(constant(t.builder, 1, f32)); }) == "complex_pair");
  CHECK(error_label([&] { conj(pairs); }) == "dtype_kind");
  CHECK(error_label([&] { exp(z); }) == "dtype_kind");
}
