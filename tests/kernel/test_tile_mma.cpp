#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/tile_mma.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/tile_blocks.h"

using namespace lathe;
using namespace lathe::kernel;
using test::tile_block;

namespace {

constexpr std::int64_t x_stride = 100, y_stride = 72;

struct Operands {
  std::vector<float> c = std::vector<float>(32 * 32, 1);
  std::vector<std::uint16_t> x = std::vector<std::uint16_t>(32 * x_stride),
                             y = std::vector<std::uint16_t>(48 * y_stride);

  void set(int m, int k, float value) { x[static_cast<std::size_t>(m * x_stride + k)] = bf16_bits(value); }
  void set_right(int k, int n, float value) {
    y[static_cast<std::size_t>(k / 2 * y_stride + 2 * n + k % 2)] = bf16_bits(value);
  }
};

std::vector<float> run(const Kernel& kernel, Operands o, std::int64_t k) {
  std::vector<float> out(32 * 32, -1);
  const auto bind = [](auto& v) { return BoundBuffer{v.data(), static_cast<std::int64_t>(v.size())}; };
  const BoundBuffer buffers[] = {bind(o.c), bind(o.x), bind(o.y), bind(out)};
  const std::int64_t dims[] = {k, x_stride, y_stride};
  interpret(kernel, buffers, dims);
  return out;
}

void rejects(const std::string& label, const std::function<void(TileMma&, Kernel&)>& damage) {
  Kernel kernel = tile_block(32, 32, true);
  const auto product = std::find_if(kernel.values.begin(), kernel.values.end(),
                                    [](const auto& in) { return record_of(in) == &tile_mma_record; });
  REQUIRE(product != kernel.values.end());
  const auto at = static_cast<std::size_t>(product - kernel.values.begin());
  TileMma mma = TileMma::of(*product);
  damage(mma, kernel);
  kernel.values[at] = mma.instruction();
  CHECK_THROWS_WITH(verify(kernel), Catch::Contains("[" + label + "]"));
}

}  // namespace

TEST_CASE("tile_mma: matmuls at all positions, with own strides, accumulating or starting from zero") {
  Operands o;
  for (int i = 0; i < 32; ++i)
    for (int k = 0; k < 96; ++k)
      o.set(i, k, static_cast<float>((i * 7 + k * 3) % 17 - 8)),
          o.set_right(k, i, static_cast<float>((i * 5 + k) % 13 - 6));
  for (const int rows : {16, 32})
    for (const int columns : {16, 32})
      for (const bool continues : {false, true})
        for (const std::int64_t depth : {0, 32, 96}) {
          const std::vector<float> out = run(tile_block(rows, columns, continues), o, depth);
          for (int m = 0; m < rows; ++m)
            for (int n = 0; n < columns; ++n) {
              float sum = continues ? 1 : 0;
              for (int k = 0; k < depth; ++k)
                sum += static_cast<float>((m * 7 + k * 3) % 17 - 8) * static_cast<float>((n * 5 + k) % 13 - 6);
              REQUIRE(out[static_cast<std::size_t>(m * columns + n)] == sum);
            }
        }
}

TEST_CASE(
    "tile_mma: even and odd k accumulate separately, 32 at a time, each step rounded once, subnormals as zeros") {
  Operands o;
  const auto only = [&](std::initializer_list<std::pair<int, float>> left) {
    o.x.assign(o.x.size(), 0);
    for (const auto& [k, value] : left) o.set(0, k, value);
    return run(tile_block(16, 16, true), o, 64)[0];
  };
  for (int k = 0; k < 64; ++k) o.set_right(k, 0, 1);
  o.c[0] = 0x1p24f;
  CHECK(only({{0, 1}, {2, 1}}) == 0x1p24f + 2);  // both in one sum, before the previous sum is added
  CHECK(only({{0, 1}, {1, 1}}) == 0x1p24f + 2);  // even and odd sums are added first
  CHECK(only({{0, 1}, {32, 1}}) == 0x1p24f);     // each step separately
  o.c[0] = 0;
  CHECK(only({{0, 0x1p24f}, {2, 1}, {4, -0x1p24f}}) == 0);  // the even ones in order
  CHECK(only({{0, 0x1p24f}, {1, 1}, {2, -0x1p24f}}) == 1);  // the odd ones separately
  CHECK(only({{0, 0x1p-130f}}) == 0);
  o.c[0] = 0x1p-130f;
  CHECK(only({}) == 0);
  for (int k = 0; k < 64; ++k) o.set_right(k, 0, 0x1p-70f);
  CHECK(only({{0, 0x1p-70f}}) == 0);
  // 2^-126 - 2^-150 has 24 bits below the smallest normal number; as a subnormal it would be rounded up to that.
  o.set_right(2, 0, -0x1p-75f), o.set_right(0, 0, 0x1p-63f);
  CHECK(only({{0, 0x1p-63f}, {2, 0x1p-75f}}) == 0);
}

TEST_CASE("tile_mma of split bf16: six products of terms for every 32 k") {
  constexpr std::int64_t depth = 64;
  Operands o;
  o.x.assign(depth / 32 * bf16_terms * term_elements, 0), o.y = o.x;
  const auto position = [](int k, int term, int in_term) {
    return static_cast<std::size_t>((k / 32 * bf16_terms + term) * term_elements + in_term);
  };
  for (int k = 0; k < depth; ++k)
    for (int s = 0; s < bf16_terms; ++s)
      for (int i = 0; i < 32; ++i) {
        o.x[position(k, s, i * 32 + k % 32)] = bf16_bits(static_cast<float>((i + k + 3 * s) % 7 - 3));
        o.y[position(k, s, k % 32 / 2 * 64 + 2 * i + k % 2)] = bf16_bits(static_cast<float>((i * 3 + k + s) % 5 - 2));
      }
  for (const int rows : {16, 32})
    for (const int columns : {16, 32}) {
      const std::vector<float> out = run(tile_block(rows, columns, true, 40, true), o, depth);
      for (int m = 0; m < rows; ++m)
        for (int n = 0; n < columns; ++n) {
          float sum = 1;
          for (int k = 0; k < depth; ++k)
            for (const auto& [l, r] : term_products)
              sum += static_cast<float>((m + k + 3 * l) % 7 - 3) * static_cast<float>((n * 3 + k + r) % 5 - 2);
          REQUIRE(out[static_cast<std::size_t>(m * columns + n)] == sum);
        }
    }
}

TEST_CASE("terms of an f32: three bf16 numbers that sum to it") {
  const auto term = [](float x, int s) { return static_cast<float>(evaluate_bf16_term({.real = x}, s).real); };
  for (const float x : {0.0f, -0.0f, 1.0f, -1.0000001f, 3.14159274f, 16777215.0f, 1e-30f, 3.39e38f, -3e38f}) {
    INFO(x);
    double sum = 0;
    for (int s = 0; s < bf16_terms; ++s) {
      const float value = term(x, s);
      CHECK(bf16_value(bf16_bits(value)) == value);
      CHECK(std::abs(value) <= std::ldexp(std::abs(x), s == 0 ? 1 : s == 1 ? -7 : -15));
      sum += static_cast<double>(value);
    }
    CHECK(sum == static_cast<double>(x));
  }
  constexpr float inf = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  for (const float x : {inf, -inf, std::nanf(""), std::bit_cast<float>(0x7fffffffU), largest, -largest}) {
    INFO(x);
    CHECK(std::isnan(term(x, 2)));
  }
}

TEST_CASE("terms of an f32 times 2^23 are zeros or normal numbers, for every f32 below 2^104") {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!(std::abs(x) < 0x1p104f)) continue;
    double sum = 0;
    for (int s = 0; s < bf16_terms; ++s) {
      const double value = evaluate_bf16_term({.real = static_cast<double>(x * 0x1p23f)}, s).real;
      REQUIRE((value == 0 || std::abs(value) >= 0x1p-126));
      sum += value;
    }
    REQUIRE(sum == static_cast<double>(x) * 0x1p23);
  }
}

TEST_CASE("tile_mma: errors of the interpreter") {
  CHECK_THROWS_WITH(run(tile_block(32, 32, false), {}, 48), Catch::Contains("[tile_shape]"));
  Operands few;
  few.x.resize(31 * x_stride);
  CHECK_THROWS_WITH(run(tile_block(32, 32, false), few, 32), Catch::Contains("[out_of_bounds]"));
  CHECK_NOTHROW(run(tile_block(16, 32, false), few, 32));
  Builder b("unwritten");
  const Buffer x = b.buffer("x", bf16, Access::read), sums = b.alloc(f32, 256);
  tile_mma(b, {16, 16, true}, {sums, 0, 16}, {x, 0, 32}, {x, 0, 32}, 32);
  std::vector<std::uint16_t> data(512);
  const BoundBuffer bound[] = {{data.data(), 512}};
  CHECK_THROWS_WITH(interpret(test::round_trip(b.finish()), bound, {}), Catch::Contains("[uninitialised]"));
}

TEST_CASE("tile_mma prints its operands, and checks its rules") {
  CHECK_THAT(print(tile_block(32, 16, true)),
             Catch::Contains("tile_mma sums[0 by 40] += x[0 by x_stride], y[0 by y_stride], 32 x 16 x k\n"));
  CHECK_THAT(print(tile_block(32, 16, false)), Catch::Contains("tile_mma sums[0 by 40] = x"));
  rejects("tile_shape", [](TileMma& m, Kernel&) { m.rows = 24; });
  rejects("tile_shape", [](TileMma& m, Kernel& k) {
    k.values.push_back({.op = Opcode::constant, .type = {i64, 1}, .integer = 33});
    m.depth = static_cast<ValueId>(k.values.size()) - 1;
  });
  CHECK_THAT(print(tile_block(32, 32, true, 40, true)),
             Catch::Contains("tile_mma sums[0 by 40] += x[0 by 32], y[0 by 64], 32 x 32 x k as split bf16\n"));
  CHECK_THAT(print(tile_block(32, 32, true, 40, false, 12)),
             Catch::Contains("y[0 by y_stride], 32 x 32 x k, prefetch 12 lines from 1048576\n"));
  rejects("tile_prefetch", [](TileMma& m, Kernel&) { m.prefetch_lines = 1; });
  rejects("tile_prefetch", [](TileMma& m, Kernel&) { m.prefetch = m.depth; });
  rejects("tile_prefetch", [](TileMma& m, Kernel&) { m.prefetch = m.depth, m.prefetch_lines = 1000; });
  rejects("bf16_terms", [](TileMma& m, Kernel&) { m.split_bf16 = true; });
  rejects("tile_operands", [](TileMma& m, Kernel&) { m.right.buffer = 0; });
  rejects("tile_operands", [](TileMma& m, Kernel& k) {
    std::swap(m.sums.buffer, m.left.buffer), k.buffers[1].access = Access::read_write;
  });
  rejects("access", [](TileMma& m, Kernel&) { m.left.buffer = 3; });
  rejects("dominance", [](TileMma& m, Kernel& k) {
    k.values.push_back({.op = Opcode::loop_index, .type = {i64, 1}});
    m.left.stride = static_cast<ValueId>(k.values.size()) - 1;
  });
}
