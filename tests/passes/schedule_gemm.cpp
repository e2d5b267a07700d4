#include <catch2/catch.hpp>

#include "tests/passes/schedule_gemm_case.h"

namespace lathe::testing {
namespace {

/// A small tile, so that small sizes meet every edge.
schedule::GemmTile small_tile(DType compute, int nv = 2) {
  return {.compute = compute, .lanes = 4, .mr = 3, .nv = nv, .kc = 8, .mc = 6, .nc = 16};
}

void check(const GemmProblem& p, const GemmPlan& plan) {
  GemmRun run(p, plan);
  run.run(interpret_whole);
  INFO("sources " << static_cast<int>(plan.lhs) << " " << static_cast<int>(plan.rhs));
  CHECK(run.mismatch() == "");
}

const LaneAxis axes[] = {LaneAxis::k, LaneAxis::row};

TEST_CASE("blocked product: ragged sizes, both lane axes, every source") {
  const std::int64_t sizes[][4] = {{1, 1, 1, 1},  {2, 3, 8, 8},  {1, 7, 9, 11},  {2, 13, 21, 17},
                                   {1, 6, 16, 4}, {3, 2, 3, 19}, {1, 4, 33, 24}, {1, 14, 20, 3}};
  for (const auto& [batch, m, n, k] : sizes)
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes)
        for (const Source left : {Source::packed, Source::loaded, Source::direct})
          for (const Source right : {Source::packed, Source::loaded, Source::direct}) {
            if (right == Source::direct && rhs == LaneAxis::k) continue;
            const bool known = (m + n + k + static_cast<int>(left)) % 2 == 0;
            check({.batch = batch, .m = m, .n = n, .k = k, .lhs = lhs, .rhs = rhs, .known = known},
                  {.tile = small_tile(f32), .lhs = left, .rhs = right});
          }
}

TEST_CASE("blocked product: strips packed by whole vectors of rows") {
  for (const int mc : {2, 6, 8})
    for (const std::int64_t m : {1, 3, 7, 13})
      for (const LaneAxis lhs : axes)
        for (const std::int64_t k : {5, 8, 19}) {
          const schedule::GemmTile tile{.lanes = 4, .mr = 2, .nv = 2, .kc = 8, .mc = mc, .nc = 16};
          check({.batch = 2, .m = m, .n = 21, .k = k, .lhs = lhs, .known = m == 7}, {.tile = tile});
        }
}

TEST_CASE("skinny product: dot products along k") {
  for (const std::int64_t m : {1, 3, 5})
    for (const std::int64_t n : {1, 4, 11})
      for (const std::int64_t k : {0, 1, 4, 9})
        for (const DType dtype : {f32, i64, bf16}) {
          const GemmProblem p{.storage = dtype, .batch = 2, .m = m, .n = n, .k = k, .known = (m + n + k) % 2 == 0};
          const schedule::GemmTile tile{
              .compute = p.compute(), .lanes = 4, .mr = 3, .nv = 2, .kc = 8, .mc = 3, .nc = 6};
          check(p, {schedule::GemmStrategy::skinny_dot, tile, Source::direct, Source::direct});
        }
}

TEST_CASE("every plan of plan_gemm works, whatever is known") {
  const std::int64_t sizes[][4] = {{1, 1, 40, 20}, {3, 1, 9, 4},  {1, 8, 33, 7},  {1, 20, 18, 9},
                                   {2, 15, 5, 6},  {2, 7, 70, 3}, {1, 30, 70, 18}};
  for (const auto& [batch, m, n, k] : sizes)
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes)
        for (const bool known : {false, true})
          for (const int bits : {128, 512}) {
            const GemmProblem p{.batch = batch, .m = m, .n = n, .k = k, .lhs = lhs, .rhs = rhs, .known = known};
            schedule::GemmQuery query{.vector_bits = bits, .lhs_axis = lhs, .rhs_axis = rhs, .lhs_cheap = k % 2 == 0};
            if (known) query.batch = batch, query.m = m, query.n = n, query.k = k;
            check(p, schedule::plan_gemm(query));
          }
}

TEST_CASE("plans: what is streamed, loaded and packed") {
  schedule::GemmQuery q{.batch = 1, .n = 1536, .k = 384};
  CHECK(plan_gemm(q).strategy == schedule::GemmStrategy::blocked);
  CHECK(plan_gemm(q).rhs == Source::packed);  // many rows, or unknown
  CHECK(plan_gemm(q).lhs == Source::direct);
  q.lhs_cheap = false;
  CHECK(plan_gemm(q).lhs == Source::loaded);
  q.m = 1;  // decoding with weights [n, k]
  CHECK(plan_gemm(q).strategy == schedule::GemmStrategy::skinny_dot);
  q.rhs_axis = LaneAxis::row;  // and with weights [k, n]
  CHECK(plan_gemm(q).strategy == schedule::GemmStrategy::blocked);
  CHECK(plan_gemm(q).rhs == Source::direct);
  CHECK(plan_gemm(q).tile.mr == 1);
  const schedule::GemmQuery scores{.k = 64};  // batches of unknown sizes
  CHECK(plan_gemm(scores).rhs == Source::loaded);
}

TEST_CASE("blocked product: dtypes") {
  for (const DType dtype : {f32, f64, i32, i64, bf16})
    for (const Source source : {Source::packed, Source::loaded}) {
      const GemmProblem p{.storage = dtype, .batch = 2, .m = 5, .n = 11, .k = 13, .rhs = LaneAxis::row};
      check(p, {.tile = small_tile(p.compute()), .lhs = source, .rhs = source});
    }
}

TEST_CASE("blocked product: empty sums are zero, empty results are nothing") {
  for (const bool known : {false, true}) {
    check({.batch = 2, .m = 4, .n = 5, .k = 0, .known = known}, {.tile = small_tile(f32)});
    check({.batch = 2, .m = 0, .n = 5, .k = 3, .known = known}, {.tile = small_tile(f32)});
    check({.batch = 2, .m = 4, .n = 0, .k = 3, .known = known}, {.tile = small_tile(f32)});
    check({.batch = 0, .m = 4, .n = 5, .k = 3, .known = known}, {.tile = small_tile(f32)});
  }
}

TEST_CASE("blocked product: one right operand for all batches") {
  for (const Source source : {Source::packed, Source::loaded})
    check({.batch = 3, .m = 4, .n = 10, .k = 9, .shared_rhs = true}, {.tile = small_tile(f32), .rhs = source});
}

TEST_CASE("blocked product: the tiles of real machines") {
  for (const int bits : {128, 256, 512})
    for (const DType compute : {f32, f64, i32, i64}) {
      const schedule::GemmTile tile = schedule::choose_tile(compute, bits);
      check({.storage = compute, .m = tile.mr + 1, .n = tile.n_step() + 1, .k = tile.lanes + 1}, {.tile = tile});
    }
}

TEST_CASE("blocked product: bits do not depend on the split of the parallel range") {
  const GemmProblem p{.batch = 2, .m = 17, .n = 37, .k = 21, .whole = false};
  const auto in_pieces = [](std::int64_t piece) {
    return [piece](const kernel::Kernel& k, const std::vector<kernel::BoundBuffer>& buffers,
                   const std::vector<std::int64_t>& dims) {
      const std::int64_t count = kernel::extent(k, dims);
      for (std::int64_t end = count; end > 0; end -= piece)  // in descending order
        kernel::interpret(k, buffers, dims, {.begin = std::max<std::int64_t>(end - piece, 0), .end = end});
    };
  };
  const GemmPlan plan{.tile = small_tile(f32)};
  const std::string whole = GemmRun(p, plan).run(interpret_whole);
  for (const std::int64_t piece : {1, 2, 5}) CHECK(GemmRun(p, plan).run(in_pieces(piece)) == whole);
  GemmPlan loaded = plan;
  loaded.rhs = Source::loaded;
  CHECK(GemmRun(p, loaded).run(interpret_whole) == whole);
}

}  // namespace
}  // namespace lathe::testing
