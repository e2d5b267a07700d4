#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "passes/cpu/gemm/gemm_strategies.h"
#include "tests/passes/gemm/schedule_gemm_case.h"
#include "tests/support/kernels/cpu_infos.h"

namespace lathe::testing {
namespace {

/// A small tile, so that small sizes cover all edge cases.
cpu::GemmTile small_tile(DType compute, int nv = 2) {
  return {.compute = compute, .lanes = 4, .mr = 3, .nv = nv, .kc = 8, .mc = 6, .nc = 16};
}

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
                  {.tile = small_tile(f32), .lhs = left, .rhs = right, .register_epilogue = (m + n) % 2 == 0});
          }
}

TEST_CASE("blocked product: row blocks packed by whole vectors of rows") {
  for (const int mc : {2, 6, 8})
    for (const std::int64_t m : {1, 3, 7, 13})
      for (const LaneAxis lhs : axes)
        for (const std::int64_t k : {5, 8, 19}) {
          const cpu::GemmTile tile{.lanes = 4, .mr = 2, .nv = 2, .kc = 8, .mc = mc, .nc = 16};
          check({.batch = 2, .m = m, .n = 21, .k = k, .lhs = lhs, .known = m == 7}, {.tile = tile});
        }
}

TEST_CASE("skinny product: dot products along k") {
  for (const std::int64_t m : {1, 3, 5})
    for (const std::int64_t n : {1, 4, 11})
      for (const std::int64_t k : {0, 1, 4, 9})
        for (const DType dtype : {f32, i64, bf16}) {
          const GemmProblem p{.storage = dtype, .batch = 2, .m = m, .n = n, .k = k, .known = (m + n + k) % 2 == 0};
          const cpu::GemmTile tile{.compute = p.compute(), .lanes = 4, .mr = 3, .nv = 2, .kc = 8, .mc = 3, .nc = 6};
          check(p, {cpu::GemmStrategy::skinny_dot, tile, Source::direct, Source::direct});
        }
}

TEST_CASE("skinny product: row blocks per task, blocks of k, ragged columns") {
  for (const std::int64_t m : {2, 4, 7})
    for (const std::int64_t n : {8, 9, 21})
      for (const std::int64_t k : {8, 17, 27})
        for (const bool known : {false, true}) {
          const cpu::GemmTile tile{.lanes = 4, .mr = 2, .nv = 4, .kc = 8, .mc = 4, .nc = 8};
          check({.batch = 2, .m = m, .n = n, .k = k, .known = known},
                {cpu::GemmStrategy::skinny_dot, tile, Source::direct, Source::direct});
        }
}

TEST_CASE("product in splits of k: ragged rows and columns, operands of both axes") {
  for (const std::int64_t m : {1, 2, 5})
    for (const std::int64_t n : {4, 9, 21})
      for (const int splits : {2, 3})
        for (const std::int64_t depth : {1, 4, 7})
          for (const LaneAxis lhs : axes)
            for (const Source source : {Source::loaded, Source::direct}) {
              const cpu::GemmTile tile{.lanes = 4, .mr = 2, .nv = 2, .kc = 4, .mc = 4, .nc = 16};
              const GemmProblem p{.batch = m == 1 ? 3 : 1,
                                  .m = m,
                                  .n = n,
                                  .k = splits * depth,
                                  .lhs = lhs,
                                  .rhs = LaneAxis::row,
                                  .known = (m + n + depth) % 2 == 0};
              check(p, {.tile = tile, .lhs = source, .rhs = Source::direct, .splits = splits});
            }
}

TEST_CASE("plans split k for few rows with a large right operand that is read along n") {
  cpu::GemmQuery query{.cpu = unnamed_cpu(), .batch = 1, .m = 1, .n = 768, .k = 3072, .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(query).splits == 16);
  query.k = 3071;  // 37 * 83
  CHECK(plan_gemm(query).splits == 1);
  query.k = 3072, query.n = 50257;  // blocks of columns give enough tasks
  CHECK(plan_gemm(query).splits == 1);
  query.n = 64;  // small
  CHECK(plan_gemm(query).splits == 1);
  query.n = 768, query.m = 5;
  CHECK(plan_gemm(query).splits == 1);
  query.m = 3;  // the sums of a step and a row of the right operand share the registers
  CHECK(plan_gemm(query).tile.nv * 4 < 32);
  query.m = 1, query.rhs_axis = LaneAxis::k;
  CHECK(plan_gemm(query).splits == 1);
  query.rhs_axis = LaneAxis::row, query.k = {};
  CHECK(plan_gemm(query).splits == 1);
}

TEST_CASE("plans pack a right operand that exceeds the caches for very many rows only") {
  cpu::GemmQuery query{.cpu = unnamed_cpu(), .batch = 1, .m = 2048, .n = 3072, .k = 3072, .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(query).rhs == Source::packed);
  query.m = 1024;
  CHECK(plan_gemm(query).rhs == Source::loaded);
  query.m = {};
  CHECK(plan_gemm(query).rhs == Source::loaded);
  query.m = 2048, query.n = 50257;
  CHECK(plan_gemm(query).rhs == Source::loaded);
  query.n = 3072, query.batch = 2;
  CHECK(plan_gemm(query).rhs == Source::loaded);
}

TEST_CASE("plans copy a left operand read along its rows first if the last-level cache is slow") {
  cpu::GemmQuery query{.cpu = test::cpu_with(512, {.slow_last_level = true}),
                       .batch = 1,
                       .n = 768,
                       .lhs_axis = LaneAxis::row,
                       .rhs_axis = LaneAxis::row};
  const auto left = [&](std::int64_t m) {
    query.m = m;
    return plan_gemm(query).lhs;
  };
  for (const std::int64_t m : {768, 1024, 3071}) CHECK(left(m) == Source::packed);
  CHECK(left(65) == Source::direct);
  query.k = 256;  // few steps
  CHECK(left(3072) == Source::direct);
  query.k = {}, query.n = 65;
  CHECK(left(3072) == Source::direct);
  query.n = 768, query.batch = 12;
  CHECK(left(3072) == Source::direct);
  query.batch = 1, query.lhs_axis = LaneAxis::k;
  CHECK(left(3072) == Source::direct);
  query.lhs_axis = LaneAxis::row, query.cpu = {};
  CHECK(left(3072) == Source::direct);
}

TEST_CASE("plans read a small right operand in place for few rows, and split few columns into equal tiles") {
  cpu::GemmQuery query{.cpu = unnamed_cpu(), .batch = 1, .m = 100, .n = 100, .k = 100, .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(query).rhs == Source::direct);
  query.rhs_loadable = false;
  CHECK(plan_gemm(query).rhs == Source::loaded);
  query.rhs_loadable = true, query.m = 1024;
  CHECK(plan_gemm(query).rhs != Source::direct);
  query.m = 100, query.k = 1000;
  CHECK(plan_gemm(query).rhs != Source::direct);
  query.m = {}, query.k = 100;
  CHECK(plan_gemm(query).rhs != Source::direct);
  query.m = 100, query.batch = 48;  // heads
  CHECK(plan_gemm(query).rhs == Source::direct);
  query = {.cpu = unnamed_cpu(),
           .batch = 1,
           .m = 65,
           .n = 384,
           .k = 1024,
           .lhs_axis = LaneAxis::row,
           .rhs_axis = LaneAxis::row};
  CHECK(plan_gemm(query).rhs == Source::direct);  // a gradient that was just computed
  query.lhs_axis = LaneAxis::k;
  CHECK(plan_gemm(query).rhs == Source::loaded);
  const auto vectors = [](std::int64_t m, std::int64_t n) {
    return cpu::plan_gemm({.cpu = unnamed_cpu(), .batch = 1, .m = m, .n = n, .k = 64, .rhs_axis = LaneAxis::row})
        .tile.nv;
  };
  CHECK(vectors(32, 32) == 2);  // 8 rows x 3 vectors fit
  CHECK(vectors(12, 72) == 3);  // 6 x 4: 3 + 2 instead of 4 + 1
  CHECK(vectors(12, 128) == 4);
}

TEST_CASE("blocked product: remainders of known rows, with one register tile and many") {
  for (const std::int64_t m : {1, 3, 4, 5, 11})
    for (const LaneAxis lhs : axes)
      for (const Source left : {Source::loaded, Source::direct, Source::packed})
        for (const Source right : {Source::loaded, Source::packed}) {
          const cpu::GemmTile tile{.lanes = 4, .mr = 4, .nv = 1, .kc = 8, .mc = 8, .nc = 8};
          check({.m = m, .n = 10, .k = 19, .lhs = lhs, .known = true}, {.tile = tile, .lhs = left, .rhs = right});
        }
}

TEST_CASE("blocked product: the k loop is split if the epilogue memory is prefetched") {
  for (const std::int64_t m : {3, 4, 9})
    for (const std::int64_t n : {5, 16, 21})
      for (const std::int64_t k : {0, 1, 3, 8, 19})
        for (const bool known : {false, true}) {
          const LaneAxis lhs = axes[(m + n) % 2];
          const cpu::GemmTile tile{.lanes = 4, .mr = 4, .nv = 2, .kc = 8, .mc = 8, .nc = m == 9 ? 8 : 16};
          check({.batch = 2, .m = m, .n = n, .k = k, .lhs = lhs, .known = known, .prefetch = true},
                {.tile = tile, .lhs = Source::direct, .rhs = Source::loaded});
        }
}

TEST_CASE("packing: micro_panels of one, some and all rows, remainder steps of k") {
  for (const std::int64_t n : {1, 7, 8, 9, 13, 16})
    for (const std::int64_t k : {1, 3, 4, 7, 8, 18})
      for (const LaneAxis rhs : axes)
        for (const bool known : {false, true})
          for (const Source source : {Source::loaded, Source::packed})
            check({.m = 3, .n = n, .k = k, .rhs = rhs, .known = known},
                  {.tile = small_tile(f32), .lhs = Source::direct, .rhs = source});
}

TEST_CASE("every plan of plan_gemm works for known and unknown sizes") {
  const std::int64_t sizes[][4] = {{1, 1, 40, 20}, {3, 1, 9, 4},  {1, 8, 33, 7},   {1, 20, 18, 9},
                                   {2, 15, 5, 6},  {2, 7, 70, 3}, {1, 30, 70, 18}, {1, 37, 300, 9}};
  for (const auto& [batch, m, n, k] : sizes)
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes)
        for (const bool known : {false, true})
          for (const int bits : {128, 512}) {
            const GemmProblem p{.batch = batch, .m = m, .n = n, .k = k, .lhs = lhs, .rhs = rhs, .known = known};
            cpu::GemmQuery query{
                .cpu = test::cpu_with(bits), .lhs_axis = lhs, .rhs_axis = rhs, .lhs_loadable = k % 2 == 0};
            if (known) query.batch = batch, query.m = m, query.n = n, query.k = k;
            check(p, cpu::plan_gemm(query));
          }
}

TEST_CASE("tasks: fewer rows if the cores then finish earlier") {
  struct Case {
    int cores;
    std::int64_t m, n;
    int start_rows = 16;
    std::int64_t tasks;
  };
  // Blocks of 48 columns: 11 of 512 columns, 1 of 48; blocks of at most 1024 rows.
  for (const Case& c : {Case{.cores = 1, .m = 512, .n = 512, .tasks = 11},
                        {.cores = 8, .m = 512, .n = 512, .tasks = 22},
                        {.cores = 16, .m = 512, .n = 512, .tasks = 22},
                        {.cores = 16, .m = 1024, .n = 512, .tasks = 44},
                        {.cores = 16, .m = 1024, .n = 512, .start_rows = 128, .tasks = 11},
                        {.cores = 8, .m = 8, .n = 512, .tasks = 11},
                        {.cores = 4, .m = 3000, .n = 48, .tasks = 8},
                        {.cores = 8, .m = 128, .n = 384, .start_rows = 2, .tasks = 32}}) {
    GemmPlan plan = cpu::plan_gemm({.cpu = test::cpu_with(512), .batch = 1, .m = c.m, .n = c.n, .k = 512});
    plan.tile.mc = 1024, plan.cores = c.cores, plan.start_rows = c.start_rows;
    Builder b("rows");
    const cpu::GemmSizes sizes{b.index(1), b.index(c.m), b.index(c.n), b.index(512)};
    const Value columns = b.ceil_div(sizes.n, b.index(48)), rows = cpu::rows_for_tasks(b, sizes, columns, plan, 8);
    CAPTURE(c.cores, c.m, c.n);
    CHECK(*b.constant_value(columns * b.ceil_div(sizes.m, rows)) == c.tasks);
  }
}

TEST_CASE("candidate plans: the default first, all distinct, all correct") {
  for (const LaneAxis lhs : axes)
    for (const LaneAxis rhs : axes)
      for (const bool known : {false, true}) {
        const GemmProblem p{
            .m = 9, .n = 100, .k = 270, .lhs = lhs, .rhs = rhs, .known = true, .open = known ? "" : "m"};
        cpu::GemmQuery query{.cpu = test::cpu_with(128), .batch = 1, .n = p.n, .k = p.k};
        query.lhs_axis = lhs, query.rhs_axis = rhs, query.lhs_loadable = !known;
        if (known) query.m = p.m;
        const std::vector<GemmPlan> plans =
            cpu::candidate_plans(query, {.cpu = query.cpu, .batch = 1, .m = p.m, .n = p.n, .k = p.k});
        CHECK(to_string(plans[0]) == to_string(plan_gemm(query)));
        std::set<std::string> texts;
        for (const GemmPlan& plan : plans) {
          CHECK(texts.insert(to_string(plan)).second);
          check(p, plan);
        }
        CHECK(plans.size() == (plans[0].strategy == cpu::GemmStrategy::blocked ? texts.size() : 1));
      }
  const auto count = [](const cpu::GemmQuery& query, std::int64_t m) {
    return cpu::candidate_plans(query, {.cpu = query.cpu, .batch = 1, .m = m, .n = 1536, .k = 384}).size();
  };
  const cpu::GemmQuery open{.cpu = unnamed_cpu(), .batch = 1, .n = 1536, .k = 384};
  CHECK(count(open, 4096) > count(open, 64));  // tasks of more rows than the matmul has are the same
  CHECK(count(open, 64) > 3);
  CHECK(count({.cpu = unnamed_cpu(), .m = 1, .n = 1536, .k = 384}, 1) == 1);  // dot products
}

TEST_CASE("plans: which operands are streamed, loaded and packed") {
  cpu::GemmQuery q{.cpu = unnamed_cpu(), .batch = 1, .n = 1536, .k = 384};
  CHECK(plan_gemm(q).strategy == cpu::GemmStrategy::blocked);
  CHECK(plan_gemm(q).rhs == Source::loaded);  // there may be few rows
  CHECK(plan_gemm(q).lhs == Source::direct);
  q.m = 4096;
  CHECK(plan_gemm(q).rhs == Source::packed);
  q.m = {};
  q.lhs_loadable = false;
  CHECK(plan_gemm(q).lhs == Source::packed);  // computed once for several blocks of columns
  q.n = 192;
  CHECK(plan_gemm(q).lhs == Source::loaded);
  q.n = 1536;
  q.m = 1;  // decoding with weights [n, k]
  CHECK(plan_gemm(q).strategy == cpu::GemmStrategy::skinny_dot);
  q.rhs_axis = LaneAxis::row;  // and with weights [k, n]
  CHECK(plan_gemm(q).strategy == cpu::GemmStrategy::blocked);
  CHECK(plan_gemm(q).rhs == Source::direct);
  CHECK(plan_gemm(q).tile.mr == 1);
  const cpu::GemmQuery scores{.cpu = unnamed_cpu(), .k = 64};  // batches of symbolic sizes
  CHECK(plan_gemm(scores).rhs == Source::loaded);
  q = {.cpu = unnamed_cpu(), .batch = 1, .m = 32, .n = 768, .k = 768};  // several rows
  CHECK(plan_gemm(q).strategy == cpu::GemmStrategy::skinny_dot);
  CHECK(plan_gemm(q).tile.mr == 8);
  q.k = 64;  // dot products are too short for horizontal sums to pay off
  CHECK(plan_gemm(q).strategy == cpu::GemmStrategy::blocked);
  q = {.cpu = unnamed_cpu(),
       .batch = 1,
       .m = 256,
       .n = 768,
       .k = 50257,
       .lhs_loadable = false};  // a packed copy would not fit in the caches
  CHECK(plan_gemm(q).rhs == Source::loaded);
  CHECK(plan_gemm(q).lhs == Source::loaded);
  q.k = 768;
  CHECK(plan_gemm(q).lhs == Source::packed);
  q = {.cpu = unnamed_cpu(),
       .batch = 1,
       .m = 768,
       .n = 768,
       .lhs_axis = LaneAxis::row,
       .rhs_axis = LaneAxis::row};  // a weight's gradient
  CHECK(plan_gemm(q).lhs == Source::direct);
  q.m = 50257;  // whole cache lines of a left operand that exceeds all caches
  CHECK(plan_gemm(q).lhs == Source::loaded);
  CHECK(plan_gemm(q).rhs == Source::packed);
  q.lhs_axis = LaneAxis::k;
  CHECK(plan_gemm(q).lhs == Source::direct);
  q = {.cpu = unnamed_cpu(), .batch = 1, .n = 64, .k = 768};  // one register tile spans all columns
  CHECK(plan_gemm(q).tile.n_step() == 64);
}

TEST_CASE("plans: scratch fits, blocks are whole tiles") {
  for (const DType compute : {f32, f64})
    for (const int bits : {128, 256, 512})
      for (const std::int64_t m : {0, 1, 7, 30, 200, 1024, 5000})
        for (const std::int64_t n : {0, 5, 17, 33, 64, 65, 80, 768, 50257})
          for (const std::int64_t k : {0, 64, 768, 3072, 50257})
            for (int which = 0; which < 16; ++which) {
              const auto size = [](std::int64_t s) { return s == 0 ? std::optional<std::int64_t>{} : s; };
              cpu::GemmQuery q{
                  .compute = compute, .cpu = test::cpu_with(bits), .m = size(m), .n = size(n), .k = size(k)};
              q.lhs_axis = axes[which & 1], q.rhs_axis = axes[which >> 1 & 1];
              q.lhs_loadable = (which & 4) == 0, q.rhs_shared = (which & 8) == 0;
              const GemmPlan plan = cpu::plan_gemm(q);
              const cpu::GemmTile& t = plan.tile;
              const bool dot = plan.strategy == cpu::GemmStrategy::skinny_dot;
              const std::int64_t bytes = static_cast<std::int64_t>(size_in_bytes(compute));
              const bool single = k != 0 && k <= t.kc;
              std::int64_t scratch = std::int64_t{t.nc} * std::max(2 * t.mr, single ? 0 : t.mc);
              if (dot) scratch = std::int64_t{t.mc + t.lanes} * (t.nc + t.lanes + (single ? 0 : t.nc * t.lanes));
              if (plan.rhs == Source::loaded) scratch += std::int64_t{t.nc} * t.kc;
              if (plan.lhs == Source::loaded) scratch += std::int64_t{std::max(t.mr, t.lanes)} * t.kc + t.lanes;
              const bool whole = t.mc % t.mr == 0 && t.nc % (dot ? t.nv : t.n_step()) == 0;
              if (scratch * bytes > 256 * 1024 || !whole) {
                CAPTURE(bits, m, n, k, which, scratch, t.mr, t.nv, t.kc, t.mc, t.nc);
                CHECK(scratch * bytes <= 256 * 1024);
                CHECK(whole);
              }
            }
}

TEST_CASE("blocked product: dtypes") {
  for (const DType dtype : {f32, f64, i32, i64, bf16})
    for (const Source source : {Source::packed, Source::loaded}) {
      const GemmProblem p{.storage = dtype, .batch = 2, .m = 5, .n = 11, .k = 13, .rhs = LaneAxis::row};
      check(p, {.tile = small_tile(p.compute()), .lhs = source, .rhs = source});
    }
}

TEST_CASE("blocked product: bf16 pairs, odd and even k, both lane axes, every source that packs") {
  for (const std::int64_t k : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40})
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes)
        for (const Source left : {Source::packed, Source::loaded})
          for (const Source right : {Source::packed, Source::loaded})
            for (const bool known : {false, true}) {
              const GemmProblem p{.storage = bf16,
                                  .batch = 1 + k % 2,
                                  .m = 2 + k % 5,
                                  .n = 9 + k % 9,
                                  .k = k,
                                  .lhs = lhs,
                                  .rhs = rhs,
                                  .known = known};
              cpu::GemmTile tile = small_tile(f32);
              tile.operands = cpu::GemmTile::Operands::pairs;
              check(p, {.tile = tile, .lhs = left, .rhs = right});
            }
}

TEST_CASE("plans of bf16 matmuls use pairs only if both operands are packed") {
  for (const bool pairs : {false, true}) {
    const cpu::GemmQuery query{.cpu = unnamed_cpu(),
                               .n = 768,
                               .k = 768,
                               .lhs_loadable = false,
                               .rhs_loadable = false,
                               .rhs_shared = true,
                               .pairs = pairs};
    CHECK(plan_gemm(query).tile.pairs() == pairs);
    cpu::GemmQuery one_row = query;
    one_row.m = 1;
    CHECK_FALSE(plan_gemm(one_row).tile.pairs());
    CHECK(plan_gemm(one_row).strategy == cpu::GemmStrategy::skinny_dot);
  }
}

TEST_CASE("blocked product: empty sums are zero, empty results write nothing") {
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

TEST_CASE("blocked product: the tiles of real CPUs") {
  for (const int bits : {128, 256, 512})
    for (const DType compute : {f32, f64, i32, i64}) {
      const cpu::GemmTile tile = cpu::choose_tile(compute, test::cpu_with(bits));
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
  const cpu::GemmTile dots{.lanes = 4, .mr = 3, .nv = 2, .kc = 8, .mc = 6, .nc = 8};
  const GemmPlan skinny{cpu::GemmStrategy::skinny_dot, dots, Source::direct, Source::direct};
  const std::string sums = GemmRun(p, skinny).run(interpret_whole);
  for (const std::int64_t piece : {1, 3}) CHECK(GemmRun(p, skinny).run(in_pieces(piece)) == sums);
}

}  // namespace
}  // namespace lathe::testing
