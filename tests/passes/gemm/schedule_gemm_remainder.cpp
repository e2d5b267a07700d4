#include <string>

#include <catch2/catch.hpp>

#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"

namespace lathe::testing {
namespace {

cpu::GemmTile remainder_tile(DType compute = f32) {
  return {.compute = compute, .lanes = 4, .mr = 3, .nv = 2, .kc = 8, .mc = 6, .nc = 8};
}

TEST_CASE("remainder of the columns: both lane axes, every source, ragged rows, blocks of k and of columns") {
  for (const int remainder : {1, 2, 3})
    for (const std::int64_t m : {1, 7, 20})
      for (const std::int64_t whole : {4, 12})
        for (const std::int64_t k : {0, 1, 8, 19})
          for (const LaneAxis lhs : axes)
            for (const LaneAxis rhs : axes)
              for (const Source right : {Source::packed, Source::loaded, Source::direct}) {
                if (right == Source::direct && rhs == LaneAxis::k) continue;
                const bool open = (m + k + remainder) % 2 == 0;
                const GemmProblem p{.batch = m == 7 ? 2 : 1,
                                    .m = m,
                                    .n = whole + remainder,
                                    .k = k,
                                    .lhs = lhs,
                                    .rhs = rhs,
                                    .known = true,
                                    .open = !open                ? ""
                                            : lhs == LaneAxis::k ? "batch m"
                                                                 : "batch m k"};
                check(p, {.tile = remainder_tile(),
                          .lhs = Source::direct,
                          .rhs = right,
                          .register_epilogue = m == 20,
                          .remainder = remainder});
              }
}

TEST_CASE("remainder of the columns: dtypes, and one right operand for all batches") {
  for (const LaneAxis lhs : axes)
    for (const Source right : {Source::packed, Source::loaded}) {
      for (const DType dtype : {f32, f64, i32, i64}) {
        const GemmProblem p{.storage = dtype, .batch = 2, .m = 5, .n = 9, .k = 13, .lhs = lhs, .known = true};
        check(p, {.tile = remainder_tile(dtype), .lhs = Source::direct, .rhs = right, .remainder = 1});
      }
      check({.batch = 3, .m = 4, .n = 10, .k = 9, .lhs = lhs, .known = true, .shared_rhs = true},
            {.tile = remainder_tile(), .lhs = Source::direct, .rhs = right, .remainder = 2});
    }
}

TEST_CASE("remainder of the columns: bits depend neither on the split of the range nor on the tile") {
  for (const LaneAxis lhs : axes) {
    const GemmProblem p{.batch = 2, .m = 17, .n = 14, .k = 21, .lhs = lhs, .known = true, .whole = false};
    const auto in_pieces = [](const kernel::Kernel& k, const std::vector<kernel::BoundBuffer>& buffers,
                              const std::vector<std::int64_t>& dims) {
      for (std::int64_t end = kernel::extent(k, dims); end > 0; --end)
        kernel::interpret(k, buffers, dims, {.begin = end - 1, .end = end});
    };
    const GemmPlan plan{.tile = remainder_tile(), .lhs = Source::direct, .rhs = Source::loaded, .remainder = 2};
    const std::string whole = GemmRun(p, plan).run(interpret_whole);
    CHECK(GemmRun(p, plan).run(in_pieces) == whole);
    GemmPlan other = plan;
    other.tile.mr = 4, other.tile.nv = 1, other.tile.kc = 32, other.tile.mc = 16, other.rhs = Source::packed;
    CHECK(GemmRun(p, other).run(interpret_whole) == whole);
  }
}

TEST_CASE("plans compute few last columns separately only if that is faster") {
  const auto remainder = [](cpu::GemmQuery query) { return plan_gemm(query).remainder; };
  const cpu::GemmQuery head{.cpu = unnamed_cpu(), .batch = 1, .n = 65, .k = 384};
  CHECK(remainder(head) == 1);
  CHECK(plan_gemm(head).tile.n_step() == 64);
  const auto with = [&](const auto& change) {
    cpu::GemmQuery query = head;
    change(query);
    return plan_gemm(query).remainder;
  };
  using Query = cpu::GemmQuery&;
  CHECK(with([](Query q) { q.n = 64; }) == 0);
  CHECK(with([](Query q) { q.n = 70; }) == 6);
  CHECK(with([](Query q) { q.n = 72; }) == 0);           // 8 of 16 lanes
  CHECK(with([](Query q) { q.n = 15; }) == 0);           // no whole vector
  CHECK(with([](Query q) { q.n = 16 * 13 + 1; }) == 0);  // one vector of many
  CHECK(with([](Query q) { q.n = {}; }) == 0);
  CHECK(with([](Query q) { q.m = 4; }) == 0);
  CHECK(with([](Query q) { q.m = 5, q.rhs_axis = LaneAxis::row; }) == 1);
  CHECK(with([](Query q) { q.m = 32; }) == 0);  // dot products do not use vectors of columns
  CHECK(with([](Query q) { q.k = 64; }) == 1);
  CHECK(with([](Query q) { q.k = 16, q.n = 66; }) == 0);  // horizontal sums would take too long
  CHECK(with([](Query q) { q.k = 5000; }) == 0);          // more than is copied
  CHECK(with([](Query q) { q.k = 5000, q.m = 512; }) == 1);
  CHECK(with([](Query q) { q.k = 17000, q.m = 512; }) == 0);
  CHECK(with([](Query q) { q.k = {}; }) == 0);
  CHECK(with([](Query q) { q.lhs_loadable = false; }) == 0);
  CHECK(with([](Query q) { q.compute = f64; }) == 1);
  CHECK(with([](Query q) { q.cpu = test::cpu_with(256); }) == 1);
  CHECK(with([](Query q) { q.lhs_run = 9, q.m = 512; }) == 1);                // of a copy
  CHECK(with([](Query q) { q.lhs_axis = LaneAxis::row, q.m = 5000; }) == 0);  // packed in tasks
  // With lanes along the rows of the left operand there are no horizontal sums or copies.
  CHECK(with([](Query q) { q.lhs_axis = LaneAxis::row, q.k = {}; }) == 1);
  CHECK(with([](Query q) { q.lhs_axis = LaneAxis::row, q.n = 72; }) == 8);
  CHECK(with([](Query q) { q.lhs_axis = LaneAxis::row, q.m = 12; }) == 0);  // less than a vector of rows
}

TEST_CASE("candidate plans compute the same columns separately, with the same bits") {
  for (const LaneAxis lhs : axes) {
    const GemmProblem p{.m = 30, .n = 17, .k = 96, .lhs = lhs, .known = true, .open = "m", .whole = false};
    const cpu::GemmQuery query{.cpu = test::cpu_with(128), .batch = 1, .n = p.n, .k = p.k, .lhs_axis = lhs};
    const auto plans = cpu::candidate_plans(query, {.cpu = query.cpu, .batch = 1, .m = p.m, .n = p.n, .k = p.k});
    CHECK(plans.size() > 1);
    const std::string first = GemmRun(p, plans[0]).run(interpret_whole);
    for (const GemmPlan& plan : plans) {
      CHECK(plan.remainder == 1);
      CHECK(GemmRun(p, plan).run(interpret_whole) == first);
    }
  }
}

TEST_CASE("skinny product: remainder columns, with and without full row blocks") {
  for (const std::int64_t m : {1, 5, 7})
    for (const std::int64_t n : {3, 9, 18})
      for (const std::int64_t k : {8, 1300})
        for (const int kc : {8, 2048}) {
          if (k > 8 && kc == 8) continue;
          const cpu::GemmTile tile{.lanes = 4, .mr = 2, .nv = 4, .kc = kc, .mc = 8, .nc = 8};
          check({.m = m, .n = n, .k = k, .known = true},
                {cpu::GemmStrategy::skinny_dot, tile, Source::direct, Source::direct});
        }
}

TEST_CASE("blocked product: a left operand along its rows is prefetched when results leave registers") {
  for (const std::int64_t m : {3, 9})
    for (const std::int64_t k : {1, 8})
      for (const bool known : {false, true}) {
        const cpu::GemmTile tile{.lanes = 4, .mr = 4, .nv = 2, .kc = 8, .mc = 8, .nc = 8};
        check({.batch = 2,
               .m = m,
               .n = 21,
               .k = k,
               .lhs = LaneAxis::row,
               .rhs = LaneAxis::row,
               .known = known,
               .prefetch = true},
              {.tile = tile, .lhs = Source::direct, .rhs = Source::direct, .register_epilogue = true});
      }
}

}  // namespace
}  // namespace lathe::testing
