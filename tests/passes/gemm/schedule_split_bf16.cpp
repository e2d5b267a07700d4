#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

#include "ir/tensor/text/parser.h"
#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// Matmuls of f32 by tile_mma on split bf16.
namespace lathe::testing {
namespace {

using cpu::GemmQuery;
using cpu::GemmStrategy;

/// Computes the matmul of `left` [m, k] and `right` [n, k] by split bf16, or by sequential fma over k.
std::vector<float> multiply(const std::vector<float>& left, const std::vector<float>& right, std::int64_t m,
                            std::int64_t n, std::int64_t k, bool split_bf16) {
  GemmPlan plan{GemmStrategy::tiles, small_amx_tile(true), Source::loaded, Source::loaded};
  if (!split_bf16) {
    plan = {GemmStrategy::blocked, cpu::choose_tile(f32, unnamed_cpu()), Source::direct, Source::loaded};
    plan.tile.nc = plan.tile.n_step();  // so that the scratch for the right operand fits
    plan.tile.block = 0;
  }
  Builder b("product");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::read),
               out = b.buffer("out", f32, Access::write);
  const auto load = [&](Buffer from) {
    return [&b, from, k](Value, Value row, Value at, LaneAxis, int lanes, Value mask) {
      return b.load(from, row * k + at, lanes, mask);
    };
  };
  emit_gemm(b, plan, {b.index(1), b.index(m), b.index(n), b.index(k)}, {.load = load(x)}, {.load = load(y)},
            [&](Value, Value row) {
              return
                  [&, row](Value column, int, Value sums, Value mask) { b.store(out, row * n + column, sums, mask); };
            });
  std::vector<float> lhs = left, rhs = right, result(static_cast<std::size_t>(m * n));
  const auto bind = [](auto& v) { return kernel::BoundBuffer{v.data(), static_cast<std::int64_t>(v.size())}; };
  const kernel::BoundBuffer buffers[] = {bind(lhs), bind(rhs), bind(result)};
  kernel::interpret(b.finish(), buffers, {});
  return result;
}

/// Returns the root mean square of the errors, relative to the sums of the terms' absolute values.
double error_of(const std::vector<float>& found, const std::vector<float>& left, const std::vector<float>& right,
                std::int64_t m, std::int64_t n, std::int64_t k) {
  double squares = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const double term =
            double{left[static_cast<std::size_t>(i * k + p)]} * right[static_cast<std::size_t>(j * k + p)];
        sum += term, magnitude += std::abs(term);
      }
      const double error = (static_cast<double>(found[static_cast<std::size_t>(i * n + j)]) - sum) / magnitude;
      squares += error * error;
    }
  return std::sqrt(squares / static_cast<double>(m * n));
}

TEST_CASE("product by split bf16: at least as accurate as one accumulator of fma") {
  std::mt19937_64 random(7);
  constexpr std::int64_t m = 17, n = 33;
  const auto normal = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = std::normal_distribution<float>()(random);
    return values;
  };
  const auto positive = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = std::uniform_real_distribution<float>(0, 1)(random);
    return values;
  };
  const auto scaled = [&](std::int64_t count) {  // over 40 powers of two
    std::vector<float> values = normal(count);
    for (float& v : values) v = std::ldexp(v, static_cast<int>(random() % 41) - 20);
    return values;
  };
  for (const std::int64_t k : {32, 100, 768}) {
    const auto compare = [&](const char* kind, const std::vector<float>& left, const std::vector<float>& right) {
      INFO(kind << ", k = " << k);
      const double split_bf16 = error_of(multiply(left, right, m, n, k, true), left, right, m, n, k),
                   fused = error_of(multiply(left, right, m, n, k, false), left, right, m, n, k);
      CHECK(split_bf16 <= fused);
      CHECK(split_bf16 < 2e-7);
    };
    compare("normal", normal(m * k), normal(n * k));
    compare("positive", positive(m * k), positive(n * k));
    compare("scaled", scaled(m * k), scaled(n * k));
  }
}

TEST_CASE("product by split bf16: infinities, NaN, the largest numbers, subnormals and zeros match f32") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN(),
                  largest = std::numeric_limits<float>::max();
  const float special[] = {0.0f,        -0.0f, 1.0f,    -3.0f,    0.5f,       1.00390625f, -1.0000001f, inf,
                           -inf,        nan,   largest, -largest, 3.3961e38f, 0x1.FEp127f, 1e-30f,      -1e-3f,
                           16777215.0f, 1e37f, -1e-37f, 1e-40f,   1e20f,      0x1p-149f};
  const std::int64_t count = std::size(special), k = 40;
  for (const int other : {0, 1}) {  // multiplied by zeros, and by ones
    std::vector<float> left(static_cast<std::size_t>(count * k), 0), right(left.size(), static_cast<float>(other));
    for (std::int64_t i = 0; i < count; ++i)
      left[static_cast<std::size_t>(i * k + 3)] = right[static_cast<std::size_t>(i * k + 3)] = special[i];
    const std::vector<float> found = multiply(left, right, count, count, k, true);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < count; ++j) {
        INFO(special[i] << " * " << special[j]);
        const float want = special[i] * special[j], have = found[static_cast<std::size_t>(i * count + j)];
        if (std::isnan(want))
          CHECK(std::isnan(have));
        else if (std::isinf(want))
          CHECK(have == want);
        else
          CHECK(std::abs(have - want) <= std::abs(want) * 1.2e-7f + 0x1p-149f);
      }
  }
}

/// Returns the largest error of a sum, relative to the sum of its terms' absolute values. One smallest subnormal is
/// not counted.
double worst_error(const std::vector<float>& found, const std::vector<float>& left, const std::vector<float>& right,
                   std::int64_t m, std::int64_t n, std::int64_t k) {
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      long double sum = 0, magnitude = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const long double term = static_cast<long double>(left[static_cast<std::size_t>(i * k + p)]) *
                                 right[static_cast<std::size_t>(j * k + p)];
        sum += term, magnitude += std::abs(term);
      }
      if (magnitude > 3.4e38L) continue;  // intermediate sums may overflow
      const long double error = std::abs(found[static_cast<std::size_t>(i * n + j)] - sum) - 0x1p-149L;
      if (error > 0) worst = std::max(worst, static_cast<double>(error / magnitude));
      if (std::isnan(found[static_cast<std::size_t>(i * n + j)])) worst = INFINITY;
    }
  return worst;
}

TEST_CASE("product by split bf16: exact over the whole range of f32, in several blocks of k and in one") {
  std::mt19937_64 random(11);
  constexpr std::int64_t m = 33, n = 34, k = 70;
  const auto numbers = [&](std::int64_t count, int least, int most) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values)
      v = std::ldexp(std::normal_distribution<float>()(random),
                     least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
    return values;
  };
  const std::pair<int, int> ranges[] = {{-140, -130}, {-126, -126}, {-110, -100}, {-60, -60}, {0, 0},     {60, 60},
                                        {100, 100},   {123, 123},   {-149, 0},    {0, 120},   {-140, 120}};
  for (const auto& [l_least, l_most] : ranges)
    for (const auto& [r_least, r_most] : ranges) {
      if (l_least + r_least > 126) continue;
      const std::vector<float> left = numbers(m * k, l_least, l_most), right = numbers(n * k, r_least, r_most);
      INFO("2^" << l_least << " .. 2^" << l_most << " by 2^" << r_least << " .. 2^" << r_most);
      CHECK(worst_error(multiply(left, right, m, n, k, true), left, right, m, n, k) < 4e-7);
    }
}

TEST_CASE("product by split bf16: huge or non-finite values do not change other sums of the block") {
  std::mt19937_64 random(5);
  constexpr std::int64_t m = 32, n = 32, k = 64;
  std::vector<float> left(m * k), right(n * k);
  for (float& v : left) v = std::normal_distribution<float>()(random);
  for (float& v : right) v = std::normal_distribution<float>()(random);
  const std::vector<float> alone = multiply(left, right, m, n, k, true);
  std::vector<float> beside = left;
  beside[5 * k + 3] = 1e38f, beside[9 * k] = INFINITY, beside[17 * k + 60] = NAN;
  const std::vector<float> found = multiply(beside, right, m, n, k, true);
  const std::vector<float> by_fma = multiply(beside, right, m, n, k, false);
  for (std::int64_t i = 0; i < m * n; ++i) {
    const std::int64_t row = i / n;
    const bool changed = row == 5 || row == 9 || row == 17;
    const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
    const auto at = static_cast<std::size_t>(i);
    REQUIRE((std::isnan(found[at]) ? std::isnan(by_fma[at]) && changed
                                   : bits(found[at]) == bits(changed ? by_fma[at] : alone[at])));
  }
}

TEST_CASE("plans of split bf16: chosen by the known sizes") {
  const GemmQuery y{.cpu = test::cpu_with(512, {.tiles = true}),
                    .batch = 1,
                    .m = 1024,
                    .n = 2304,
                    .k = 768,
                    .rhs_axis = LaneAxis::row,
                    .split_bf16 = true};
  const auto sources = [](const GemmQuery& query) {
    const GemmPlan plan = plan_gemm(query);
    return plan.tile.split_bf16() ? std::pair(plan.lhs, plan.rhs) : std::pair(Source::direct, Source::direct);
  };
  const std::pair packed{Source::packed, Source::packed}, in_tasks{Source::packed, Source::loaded},
      rows{Source::loaded, Source::packed}, none{Source::direct, Source::direct};
  CHECK(sources(y) == packed);
  GemmQuery query = y;
  query.m = 256;
  CHECK(sources(query) == in_tasks);
  query.k = 3072;
  CHECK(sources(query) == packed);
  query = y, query.m = {};
  CHECK(sources(query) == packed);
  query.rhs_axis = LaneAxis::k;
  CHECK(sources(query) == in_tasks);
  query.k = 3072;
  CHECK(sources(query) == packed);
  query = y, query.m = 50257, query.n = 768, query.k = {};
  CHECK(sources(query) == rows);
  query = y, query.n = 50257;
  CHECK(sources(query) == in_tasks);
  query = y, query.n = 768, query.k = 50257;  // the terms of either operand would exceed memory
  CHECK(sources(query) == packed);
  CHECK(plan_gemm(query).panel == 3872);
  CHECK_THAT(to_string(plan_gemm(query)), Catch::EndsWith(", panels of 3872"));
  query.n = 50257;
  CHECK(sources(query) == none);
  for (const auto size : {&GemmQuery::m, &GemmQuery::n, &GemmQuery::k}) {
    query = y, query.*size = 16;
    CHECK(sources(query) == none);
  }
  query = y, query.m = query.n = query.k = 144;
  CHECK(sources(query) == in_tasks);
  query.m = query.n = query.k = 100;  // tiles of 32 would be mostly padding
  CHECK(sources(query) == none);
  query = y, query.n = {};
  CHECK(sources(query) == none);
  query = y, query.batch = 12;
  CHECK(sources(query) == none);  // a right operand per batch
  query.rhs_shared = true;
  CHECK(sources(query) == packed);
  query = y, query.split_bf16 = false;
  CHECK(sources(query) == none);
}

TEST_CASE("plans of split bf16: packed operands and sums of a task fit its scratch") {
  for (const int k : {64, 66, 96, 128, 200, 256, 512, 768, 1024, 1030, 3072})
    for (const int n : {64, 512, 544, 2304, 8192, 50257})
      for (const std::string m : {"96", "256", "1024", "50257", "m"})
        for (const char* spec : {"ab,cb->ac", "ab,bc->ac"}) {
          const bool along_k = std::string(spec) == "ab,cb->ac";
          const std::string right = along_k ? fmt::format("{}, {}", n, k) : fmt::format("{}, {}", k, n);
          const std::string text = fmt::format(
              "graph @g(input %x: f32[{0}, {1}], input %y: f32[{2}]) {{\n"
              "  %1 = contract %x, %y {{spec=\"{3}\"}} : f32[{0}, {4}]\n  output \"o\" %1\n}}\n",
              m, k, right, spec, n);
          INFO(text);
          CHECK_NOTHROW(lower_cpu(ir::parse_graph(text), test::cpu_with(512, {.tiles = true})));
        }
}

TEST_CASE("plans of split bf16: attention heads, with both operands packed per task") {
  const auto split_bf16 = [](std::int64_t m, std::int64_t n, std::int64_t k, LaneAxis lhs = LaneAxis::k) {
    const GemmPlan plan = cpu::plan_gemm({.cpu = test::cpu_with(512, {.tiles = true}),
                                          .batch = 12,
                                          .m = m,
                                          .n = n,
                                          .k = k,
                                          .lhs_axis = lhs,
                                          .rhs_axis = LaneAxis::row,
                                          .split_bf16 = true});
    if (plan.tile.split_bf16()) CHECK((plan.lhs == Source::loaded && plan.rhs == Source::loaded));
    return plan.tile.split_bf16();
  };
  CHECK(split_bf16(1024, 1024, 64));
  CHECK(split_bf16(256, 256, 128));
  CHECK(!split_bf16(255, 256, 64));
  CHECK(!split_bf16(1024, 1024, 256));
  CHECK(split_bf16(256, 64, 256));
  CHECK(split_bf16(256, 128, 1024));
  CHECK(!split_bf16(1024, 64, 1024));
  CHECK(split_bf16(1024, 64, 1024, LaneAxis::row));
  CHECK(!split_bf16(256, 64, 256, LaneAxis::row));
  CHECK(split_bf16(256, 128, 256, LaneAxis::row));
  CHECK(!split_bf16(1024, 32, 1024));
  for (const LaneAxis lhs : axes)
    for (const LaneAxis rhs : axes) {
      const GemmQuery heads{.cpu = test::cpu_with(512, {.tiles = true}),
                            .batch = 2,
                            .m = 256,
                            .n = 90,
                            .k = 75,
                            .lhs_axis = lhs,
                            .rhs_axis = rhs,
                            .split_bf16 = true};
      CHECK(plan_gemm(heads).tile.split_bf16());
      check({.batch = 2, .m = 256, .n = 90, .k = 75, .lhs = lhs, .rhs = rhs, .known = true}, plan_gemm(heads));
    }
}

}  // namespace
}  // namespace lathe::testing
