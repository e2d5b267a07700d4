#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"

/// Sums of more steps of k than one accumulator adds: blocks of sums and their totals.
namespace lathe::testing {
namespace {

constexpr int block = 8;

cpu::GemmTile tile_in_blocks(int kc) {
  return {.lanes = 4, .mr = 3, .nv = 2, .kc = kc, .mc = 6, .nc = 16, .block = block};
}

void check_blocks(const GemmProblem& p, const GemmPlan& plan) {
  GemmRun run(p, plan);
  run.run(interpret_whole);
  INFO(to_string(plan) << (plan.prefetch_right ? ", right prefetched" : ""));
  CHECK(run.mismatch_of_blocks(block) == "");
}

/// Passes shorter than a block, as long, of several blocks, and one pass of several.
constexpr int depths[] = {2, 4, 8, 16, 64};

TEST_CASE("blocks of sums: bits depend on k alone, for all passes, sources, axes and rows") {
  for (const int kc : depths)
    for (const std::int64_t k : {0, 1, 7, 8, 9, 16, 21, 40})
      for (const LaneAxis lhs : axes)
        for (const LaneAxis rhs : axes)
          for (const Source left : {Source::packed, Source::loaded, Source::direct})
            for (const Source right : {Source::packed, Source::loaded, Source::direct}) {
              if (right == Source::direct && rhs == LaneAxis::k) continue;
              const int which = static_cast<int>(left) + static_cast<int>(right) + static_cast<int>(k);
              const GemmProblem p{.batch = 1 + which % 2,
                                  .m = 1 + which % 8,
                                  .n = 9 + which % 9,
                                  .k = k,
                                  .lhs = lhs,
                                  .rhs = rhs,
                                  .known = which % 3 > 0,
                                  .open = which % 3 == 1 ? "mk" : "",
                                  .whole = false};
              check_blocks(p, {.tile = tile_in_blocks(kc),
                               .lhs = left,
                               .rhs = right,
                               .register_epilogue = k <= block && p.known && p.open.empty()});
            }
}

TEST_CASE("blocks of sums: the total of more than 64 blocks is compensated, whatever is known of k") {
  for (const int kc : depths)
    for (const std::int64_t k : {504, 512, 513, 1024, 1601})
      for (const bool known : {false, true})
        for (const Source right : {Source::packed, Source::loaded, Source::direct}) {
          const GemmProblem p{.m = 4,
                              .n = 11,
                              .k = k,
                              .lhs = axes[k % 2],
                              .rhs = LaneAxis::row,
                              .known = true,
                              .open = known ? "" : "k",
                              .whole = false};
          check_blocks(p, {.tile = tile_in_blocks(kc), .lhs = Source::direct, .rhs = right});
          GemmProblem along_rows = p;
          along_rows.lhs = LaneAxis::row, along_rows.n = 9;
          check_blocks(along_rows,
                       {.tile = tile_in_blocks(8), .lhs = Source::direct, .rhs = Source::loaded, .remainder = 1});
        }
}

TEST_CASE("blocks of sums: epilogues that overlap with sums, and prefetched right operands") {
  for (const int kc : depths)
    for (const std::int64_t m : {1, 4, 7, 12})
      for (const std::int64_t k : {1, 8, 9, 24, 43})
        for (const bool known : {false, true}) {
          GemmProblem p{.batch = 2,
                        .m = m,
                        .n = 21,
                        .k = k,
                        .lhs = axes[m % 2],
                        .rhs = LaneAxis::row,
                        .known = known,
                        .open = "k",
                        .prefetch = true,
                        .whole = false};
          check_blocks(p, {.tile = tile_in_blocks(kc), .lhs = Source::direct, .rhs = Source::loaded});
          p.open = "";
          check_blocks(p, {.tile = tile_in_blocks(kc), .lhs = Source::direct, .rhs = Source::loaded});
          if (known)
            check_blocks(
                p,
                {.tile = tile_in_blocks(kc), .lhs = Source::direct, .rhs = Source::direct, .prefetch_right = true});
        }
}

TEST_CASE("blocks of sums: lanes along the rows of the remaining columns") {
  for (const std::int64_t k : {1, 8, 17, 40})
    for (const bool known : {false, true}) {
      const GemmProblem p{.m = 9,
                          .n = 9,
                          .k = k,
                          .lhs = LaneAxis::row,
                          .rhs = LaneAxis::row,
                          .known = true,
                          .open = known ? "" : "k",
                          .whole = false};
      check_blocks(p, {.tile = tile_in_blocks(8), .lhs = Source::direct, .rhs = Source::loaded, .remainder = 1});
    }
}

TEST_CASE("blocks of sums: pairs of bf16, and splits of k") {
  for (const int kc : depths)
    for (const std::int64_t k : {15, 16, 17, 34, 71})
      for (const bool known : {false, true}) {
        cpu::GemmTile pairs = tile_in_blocks(kc);
        pairs.operands = cpu::GemmTile::Operands::pairs;
        check({.storage = bf16, .m = 4, .n = 11, .k = k, .known = known}, {.tile = pairs});
        const GemmProblem split{.m = 2, .n = 9, .k = 3 * k, .rhs = LaneAxis::row, .known = known};
        check(split, {.tile = tile_in_blocks(kc), .lhs = Source::direct, .rhs = Source::direct, .splits = 3});
      }
}

TEST_CASE("blocks of sums: dot products along k") {
  for (const int kc : {4, 16, 32, 64, 256})  // a block has 32 k
    for (const std::int64_t m : {1, 2, 5})
      for (const std::int64_t n : {1, 5, 11})
        for (const std::int64_t k : {0, 1, 31, 32, 33, 64, 101})
          for (const bool known : {false, true}) {
            cpu::GemmTile tile{.lanes = 4, .mr = 3, .nv = 2, .kc = kc, .mc = 3, .nc = 6, .block = block};
            if (n > 1) tile.part = 3, tile.plain_blocks = 2;
            check({.batch = 2, .m = m, .n = n, .k = k, .known = known}, {.strategy = cpu::GemmStrategy::skinny_dot,
                                                                         .tile = tile,
                                                                         .lhs = Source::direct,
                                                                         .rhs = Source::direct,
                                                                         .columns_in_turn = known && kc >= k && m < 5,
                                                                         .left_in_l1 = n == 5});
          }
}

TEST_CASE("blocks of sums: bits of dot products do not depend on the split of the range or on known rows") {
  const cpu::GemmTile tile{.lanes = 4, .mr = 2, .nv = 4, .kc = 16, .mc = 4, .nc = 8, .block = block};
  const GemmPlan plan{cpu::GemmStrategy::skinny_dot, tile, Source::direct, Source::direct};
  // A block has 32 k, so the second sums have more than 64 blocks.
  const std::int64_t k = GENERATE(101, 2113);
  GemmProblem p{.batch = 2, .m = 7, .n = 11, .k = k, .whole = false};
  const std::string bits = GemmRun(p, plan).run(interpret_whole);
  const auto in_pieces = [](const kernel::Kernel& k, const std::vector<kernel::BoundBuffer>& buffers,
                            const std::vector<std::int64_t>& dims) {
    for (std::int64_t end = kernel::extent(k, dims); end > 0; --end)
      kernel::interpret(k, buffers, dims, {.begin = end - 1, .end = end});
  };
  CHECK(GemmRun(p, plan).run(in_pieces) == bits);
  p.known = true, p.open = "k";
  CHECK(GemmRun(p, plan).run(interpret_whole) == bits);
  p.open = "";
  CHECK(GemmRun(p, plan).run(interpret_whole) == bits);
  GemmPlan one_pass = plan;
  one_pass.tile.kc = 4096;
  CHECK(GemmRun(p, one_pass).run(interpret_whole) == bits);
}

TEST_CASE("blocks of sums: tiles") {
  constexpr int pairs = 48;  // of k per block
  for (const bool split : {false, true})
    for (const std::int64_t k : {20, 96, 97, 130, 200, 300})
      for (const std::int64_t m : {30, 70, 100})
        for (const bool known : {false, true}) {
          cpu::GemmTile tile = small_amx_tile(split);
          tile.block = pairs;
          GemmProblem p{.storage = split ? f32 : bf16,
                        .m = m,
                        .n = m == 70 ? 40 : 75,
                        .k = k,
                        .lhs = axes[m % 20 > 0],
                        .known = known};
          check(p, {cpu::GemmStrategy::tiles, tile, Source::loaded, Source::loaded});
          if (known || m > 30) continue;
          p.whole = false;
          std::string bits;
          for (const int kc : {16, 48})
            for (const int mc : {32, 64})
              for (const Source source : {Source::packed, Source::loaded})
                for (const bool all_known : {false, true}) {
                  tile.kc = kc, tile.mc = mc, p.known = all_known;
                  const std::string found =
                      GemmRun(p, {cpu::GemmStrategy::tiles, tile, source, source}).run(interpret_whole);
                  if (bits.empty()) bits = found;
                  CHECK(found == bits);
                }
        }
}

TEST_CASE("plans: the passes of long sums end where their blocks do") {
  for (const DType compute : {f32, f64})
    for (const int bits : {128, 256, 512})
      for (const bool slow : {false, true})
        for (const std::int64_t m : {0, 1, 2, 3, 7, 30, 200, 5000})
          for (const std::int64_t n : {0, 5, 17, 64, 768, 50257})
            for (const std::int64_t k : {0, 64, 500, 513, 768, 1100, 3072, 50257, 2'000'000})
              for (int which = 0; which < 32; ++which) {
                const auto size = [](std::int64_t s) { return s == 0 ? std::optional<std::int64_t>{} : s; };
                cpu::GemmQuery q{.compute = compute,
                                 .cpu = test::cpu_with(bits, {.slow_last_level = slow}),
                                 .m = size(m),
                                 .n = size(n),
                                 .k = size(k)};
                q.lhs_axis = axes[which & 1], q.rhs_axis = axes[which >> 1 & 1];
                q.lhs_loadable = (which & 4) == 0, q.rhs_shared = (which & 8) == 0, q.pairs = (which & 16) > 0;
                q.tiles = q.pairs && n > 17, q.split_bf16 = !q.pairs && n > 17 && m != 200;
                if (compute != f32) q.pairs = q.tiles = q.split_bf16 = false;
                const GemmPlan plan = cpu::plan_gemm(q);
                const cpu::GemmTile& t = plan.tile;
                CHECK((t.block > 0) == (compute == f32));
                if (plan.panel > 0) continue;
                const bool dot = plan.strategy == cpu::GemmStrategy::skinny_dot;
                const int whole = t.block * (dot ? t.lanes : 1);
                const std::int64_t steps = t.pairs() ? (k + 1) / 2 : k / plan.splits;
                if (whole == 0 || (k > 0 && steps <= std::max(whole, t.kc))) continue;
                if (whole % t.kc == 0 || t.kc % whole == 0) continue;
                CAPTURE(bits, m, n, k, which, t.kc);
                FAIL_CHECK(to_string(plan));
              }
}

TEST_CASE("candidate plans of a long sum have the same bits") {
  const GemmProblem p{.m = 5, .n = 40, .k = 1100, .rhs = LaneAxis::row, .known = true, .open = "m", .whole = false};
  const cpu::GemmQuery query{.cpu = test::cpu_with(128), .batch = 1, .n = p.n, .k = p.k, .rhs_axis = LaneAxis::row};
  cpu::GemmQuery sizes = query;
  sizes.m = p.m;
  const std::vector<GemmPlan> plans = cpu::candidate_plans(query, sizes);
  CHECK(plans.size() > 3);
  for (const GemmPlan& plan : plans) {
    GemmRun run(p, plan);
    run.run(interpret_whole);
    INFO(to_string(plan));
    CHECK(run.mismatch_of_blocks(512) == "");
  }
}

}  // namespace
}  // namespace lathe::testing
