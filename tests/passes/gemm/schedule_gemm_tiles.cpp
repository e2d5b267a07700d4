#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"

namespace lathe::testing {
namespace {

using cpu::GemmQuery;
using cpu::GemmStrategy;

/// f32 values that bf16 represents exactly are packed; bf16 is packed or read in place; any f32 is packed as split
/// bf16.
TEST_CASE("product by tiles and by split bf16: ragged sizes, both lane axes, every source") {
  const std::int64_t sizes[][4] = {{1, 1, 1, 1},    {2, 16, 16, 32}, {1, 33, 49, 31},  {2, 70, 70, 65},
                                   {1, 48, 40, 64}, {1, 97, 20, 96}, {1, 32, 130, 33}, {1, 40, 32, 0}};
  for (const auto& [batch, m, n, k] : sizes)
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes)
        for (const Source left : {Source::packed, Source::loaded})
          for (const Source right : {Source::packed, Source::loaded}) {
            const bool known = (m + n + k + static_cast<int>(left)) % 2 == 0;
            const DType storage = (n + static_cast<int>(right)) % 2 == 0 ? f32 : bf16;
            GemmProblem problem{
                .storage = storage, .batch = batch, .m = m, .n = n, .k = k, .lhs = lhs, .rhs = rhs, .known = known};
            check(problem, {GemmStrategy::tiles, small_amx_tile(false), left, right});
            problem.storage = f32;
            check(problem, {GemmStrategy::tiles, small_amx_tile(true), left, right});
          }
}

TEST_CASE("product by tiles: a left operand read in place") {
  for (const std::int64_t m : {5, 16, 32, 48, 75})
    for (const std::int64_t k : {32, 96})
      for (const bool known : {false, true})
        for (const Source right : {Source::packed, Source::loaded})
          check({.storage = bf16, .batch = 2, .m = m, .n = 34, .k = k, .known = known, .open = "m"},
                {GemmStrategy::tiles, small_amx_tile(false), Source::direct, right});
}

TEST_CASE("plans of tiles: which operands are read in place, packed, or too small") {
  const GemmQuery y{.cpu = test::cpu_with(512, {.tiles = true}),
                    .batch = 1,
                    .m = 256,
                    .n = 2304,
                    .k = 768,
                    .tiles = true,
                    .lhs_has_rows = true};
  const GemmPlan plan = plan_gemm(y);
  CHECK(plan.strategy == GemmStrategy::tiles);
  CHECK((plan.lhs == Source::direct && plan.rhs == Source::loaded));
  GemmQuery query = y;
  query.m = 8192;
  CHECK(plan_gemm(query).rhs == Source::packed);
  query = y, query.rhs_axis = LaneAxis::row;
  CHECK(plan_gemm(query).rhs == Source::packed);  // in long contiguous runs
  query = y, query.k = 770;                       // rows would be read past their end
  CHECK(plan_gemm(query).lhs == Source::packed);
  query = y, query.lhs_axis = LaneAxis::row, query.lhs_has_rows = false;
  CHECK((plan_gemm(query).lhs == Source::loaded && plan_gemm(query).rhs == Source::packed));
  for (const auto size : {&GemmQuery::m, &GemmQuery::n, &GemmQuery::k}) {
    query = y, query.*size = 8;
    CHECK(plan_gemm(query).strategy != GemmStrategy::tiles);
    query.*size = {};
    CHECK(plan_gemm(query).strategy == GemmStrategy::tiles);
  }
  query = y, query.tiles = false;
  CHECK(plan_gemm(query).strategy != GemmStrategy::tiles);
}

}  // namespace
}  // namespace lathe::testing
