#include <catch2/catch.hpp>

#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"

/// GEMV and small-M matmuls whose right operand is in a slow last-level cache.
namespace lathe::testing {
namespace {

TEST_CASE("product that prefetches its right operand: partial row blocks and tasks, ragged columns, blocks of k") {
  for (const std::int64_t m : {1, 3, 4, 7, 12})
    for (const std::int64_t n : {4, 16, 21, 37})
      for (const std::int64_t k : {0, 1, 8, 19})
        for (const int mc : {3, 12}) {
          const cpu::GemmTile tile{.lanes = 4, .mr = 3, .nv = 2, .kc = 8, .mc = mc, .nc = 16};
          check({.batch = 2,
                 .m = m,
                 .n = n,
                 .k = k,
                 .lhs = axes[m % 2],
                 .rhs = LaneAxis::row,
                 .known = true,
                 .prefetch = n != 16},
                {.tile = tile,
                 .lhs = Source::direct,
                 .rhs = Source::direct,
                 .register_epilogue = k == 8,
                 .prefetch_right = true});
        }
}

TEST_CASE("plans prefetch weights that few rows read along n if the last-level cache is slow") {
  const cpu::GemmQuery weights{.cpu = test::cpu_with(512, {.slow_last_level = true}),
                               .batch = 1,
                               .m = 24,
                               .n = 768,
                               .k = 3072,
                               .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(weights).prefetch_right);
  CHECK_THAT(to_string(plan_gemm(weights)), Catch::Contains("right prefetched"));
  const auto with = [&](const auto& change) {
    cpu::GemmQuery query = weights;
    change(query);
    return plan_gemm(query).prefetch_right;
  };
  CHECK(with([](auto& q) { q.m = 5; }));
  CHECK(with([](auto& q) { q.m = 3, q.k = 500; }));
  CHECK(with([](auto& q) { q.m = 2, q.k = 500; }));
  CHECK(!with([](auto& q) { q.m = 3; }));  // split K
  CHECK(!with([](auto& q) { q.m = 1, q.k = 500; }));
  CHECK(!with([](auto& q) { q.m = 3, q.n = 256, q.k = 1000; }));  // columns for two tasks
  CHECK(!with([](auto& q) { q.m = 33; }));
  CHECK(!with([](auto& q) {
    q.n = 64;
    q.k = 1024;
  }));  // in a near cache
  CHECK(!with([](auto& q) { q.n = {}; }));
  CHECK(!with([](auto& q) { q.rhs_axis = LaneAxis::k; }));
  CHECK(!with([](auto& q) { q.lhs_loadable = false; }));
  CHECK(!with([](auto& q) { q.cpu = {}; }));
}

TEST_CASE("plans for few rows iterate over all of k if the weights fit L2, otherwise over short blocks of k") {
  cpu::GemmQuery query{.cpu = unnamed_cpu(), .batch = 1, .m = 3, .n = 256, .k = 512, .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(query).tile.kc >= 512);
  query.k = 514;
  CHECK(plan_gemm(query).tile.kc < 64);
  query.m = 24, query.n = 100, query.k = 1300;
  CHECK(plan_gemm(query).tile.kc >= 1300);
  CHECK(plan_gemm(query).tile.nc >= 100);
  query.k = 1311;
  CHECK(plan_gemm(query).tile.kc == 256);
  query.n = 128;
  CHECK((plan_gemm(query).tile.mr == 6 && plan_gemm(query).tile.nv == 4));
}

TEST_CASE("plans that prefetch weights are correct, and so are the other candidates") {
  const std::int64_t sizes[][3] = {{16, 300, 500}, {20, 1000, 133}, {7, 513, 260},
                                   {2, 530, 400},  {3, 530, 400},   {4, 530, 700}};
  for (const auto& [m, n, k] : sizes) {
    const cpu::GemmQuery query{.cpu = test::cpu_with(512, {.slow_last_level = true}),
                               .batch = 1,
                               .m = m,
                               .n = n,
                               .k = k,
                               .rhs_axis = LaneAxis::row};
    CHECK(plan_gemm(query).prefetch_right);
    for (const GemmPlan& plan : candidate_plans(query, query))
      check({.m = m, .n = n, .k = k, .rhs = LaneAxis::row, .known = true, .prefetch = true}, plan);
  }
}

}  // namespace
}  // namespace lathe::testing
