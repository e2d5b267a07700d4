#include <map>
#include <string>
#include <tuple>

#include <catch2/catch.hpp>

#include "codegen/llvm/jit.h"
#include "tests/passes/gemm/schedule_gemm_case.h"

namespace lathe::testing {
namespace {

CpuInfo info_of(const codegen::TargetCpu& target) {
  return cpu_info_for(target.cpu, target.features, target.vector_bits);
}

/// Compiled kernels by key, so that splitting the range in another way compiles nothing again.
using Compiled = std::map<std::string, codegen::CompiledKernels>;

Runner jit(const codegen::TargetCpu& target, std::int64_t piece, Compiled& compiled) {
  return [target, piece, &compiled](const kernel::Kernel& k, const std::vector<kernel::BoundBuffer>& buffers,
                                    const std::vector<std::int64_t>& dims) {
    codegen::CompiledKernels& code = compiled[codegen::object_key(k, target)];
    if (code.size() == 0) code = codegen::Jit({.target = target}).compile({&k, 1});
    std::vector<void*> pointers;
    for (const kernel::BoundBuffer& buffer : buffers) pointers.push_back(buffer.data);
    std::int64_t status = 0;
    const std::int64_t count = code[0].extent(dims.data());
    for (std::int64_t begin = 0; begin < count; begin += piece)
      code[0].run(pointers.data(), dims.data(), begin, std::min(begin + piece, count), &status);
    CHECK(status == 0);
  };
}

void check(const GemmProblem& p, const GemmPlan& plan, const codegen::TargetCpu& target) {
  GemmRun run(p, plan);
  Compiled compiled;
  const std::string whole = run.run(jit(target, 1 << 20, compiled));
  CHECK(run.mismatch() == "");
  CHECK(run.run(jit(target, 1, compiled)) == whole);
}

TEST_CASE("compiled product: every source and lane axis, sizes around the tile size") {
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  const cpu::GemmTile tile = cpu::choose_tile(f32, info_of(target));
  const std::int64_t sizes[][4] = {{1, 1, 1, 1}, {2, tile.mr + 1, tile.n_step() - 1, 19}, {1, 2 * tile.mr, 100, 64}};
  for (const auto& [batch, m, n, k] : sizes)
    for (const LaneAxis lhs : {LaneAxis::k, LaneAxis::row})
      for (const LaneAxis rhs : {LaneAxis::k, LaneAxis::row})
        for (const Source left : {Source::packed, Source::loaded, Source::direct})
          for (const Source right : {Source::packed, Source::loaded, Source::direct}) {
            if (right == Source::direct && rhs == LaneAxis::k) continue;
            // The interpreter tests cover each source of one operand with each source of the other.
            if (static_cast<int>(left) + static_cast<int>(right) == 2 && left != right) continue;
            if (m == 1 && left != Source::loaded) continue;
            cpu::GemmTile blocks = tile;
            if (right == Source::loaded) {
              blocks.kc = 128, blocks.nc = 2 * tile.n_step();
              blocks.mc =
                  tile.mc / 2 / tile.mr * tile.mr;  // three numbers per sum of an unknown k, as plan_gemm does
            }
            check({.batch = batch, .m = m, .n = n, .k = k, .lhs = lhs, .rhs = rhs, .known = k == 64},
                  {.tile = blocks, .lhs = left, .rhs = right}, target);
          }
}

TEST_CASE("compiled product: dtypes and targets") {
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const codegen::TargetCpu target = codegen::TargetCpu::named(name);
    if (!target.runs_here()) continue;
    for (const DType dtype : {f32, f64, i32, i64, bf16}) {
      const GemmProblem p{.storage = dtype, .batch = 2, .m = 9, .n = 45, .k = 37, .rhs = LaneAxis::row};
      check(p, {.tile = cpu::choose_tile(p.compute(), info_of(target))}, target);
    }
  }
}

TEST_CASE("compiled product: bf16 pairs, with and without the instruction") {
  for (const codegen::TargetCpu& target : {codegen::TargetCpu::host(), codegen::TargetCpu::named("x86-64-v3")}) {
    if (!target.runs_here()) continue;
    cpu::GemmTile tile = cpu::choose_tile(f32, info_of(target));
    tile.operands = cpu::GemmTile::Operands::pairs;
    for (const std::int64_t k : {36, 37, 130})
      for (const LaneAxis lhs : {LaneAxis::k, LaneAxis::row})
        for (const Source source : {Source::packed, Source::loaded}) {
          const GemmProblem p{
              .storage = bf16, .batch = 2, .m = 19, .n = 75, .k = k, .lhs = lhs, .known = source == Source::loaded};
          check(p, {.tile = tile, .lhs = source, .rhs = source}, target);
        }
  }
}

TEST_CASE("compiled product: plans for known sizes") {
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  for (const std::int64_t batch : {1, 3})
    for (const std::int64_t m : {1, 5, 16, 70, 230})
      for (const LaneAxis lhs : {LaneAxis::k, LaneAxis::row})
        for (const LaneAxis rhs : {LaneAxis::k, LaneAxis::row}) {
          const GemmProblem p{.batch = batch, .m = m, .n = 75, .k = 41, .lhs = lhs, .rhs = rhs, .known = true};
          check(p,
                cpu::plan_gemm({.cpu = info_of(target),
                                .batch = batch,
                                .m = m,
                                .n = 75,
                                .k = 41,
                                .lhs_axis = lhs,
                                .rhs_axis = rhs}),
                target);
        }
}

TEST_CASE("compiled product: split k") {
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const codegen::TargetCpu target = codegen::TargetCpu::named(name);
    if (!target.runs_here()) continue;
    for (const std::int64_t m : {1, 4}) {
      const GemmProblem p{.m = m, .n = 1003, .k = 1020, .rhs = LaneAxis::row, .known = true};
      const GemmPlan plan =
          cpu::plan_gemm({.cpu = info_of(target), .batch = 1, .m = m, .n = p.n, .k = p.k, .rhs_axis = LaneAxis::row});
      CHECK(plan.splits > 1);
      check(p, plan, target);
    }
  }
}

TEST_CASE("compiled product: separate kernel for the last columns") {
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const codegen::TargetCpu target = codegen::TargetCpu::named(name);
    if (!target.runs_here()) continue;
    for (const std::int64_t m : {6, 70})
      for (const LaneAxis lhs : {LaneAxis::k, LaneAxis::row})
        for (const LaneAxis rhs : {LaneAxis::k, LaneAxis::row}) {
          const GemmProblem p{.m = m, .n = 49, .k = 131, .lhs = lhs, .rhs = rhs, .known = true};
          const GemmPlan plan = cpu::plan_gemm(
              {.cpu = info_of(target), .batch = 1, .m = m, .n = p.n, .k = p.k, .lhs_axis = lhs, .rhs_axis = rhs});
          const bool dots = plan.strategy == cpu::GemmStrategy::skinny_dot;
          CHECK(plan.remainder == (dots || (lhs == LaneAxis::row && m <= target.vector_bits / 32) ? 0 : 1));
          check(p, plan, target);
        }
  }
}

TEST_CASE("compiled product: many blocks") {
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  const cpu::GemmTile tile = cpu::choose_tile(f32, info_of(target));
  Compiled compiled;
  const GemmProblem p{.m = tile.mc + 5, .n = tile.nc + 9, .k = 2 * tile.kc + 3, .whole = false};
  const std::string whole = GemmRun(p, {.tile = tile}).run(jit(target, 1 << 20, compiled));
  CHECK(GemmRun(p, {.tile = tile}).run(jit(target, 1, compiled)) == whole);
  GemmProblem exact = p;
  exact.whole = true;
  check(exact, {.tile = tile}, target);
}

/// Returns the largest relative error of sums of equal terms.
double error_of(const GemmProblem& p, const GemmPlan& plan, const codegen::TargetCpu& target) {
  GemmRun run(p, plan);
  Compiled compiled;
  run.run(jit(target, 1 << 20, compiled));
  return run.error_of_equal_terms();
}

/// One accumulator for all of k has errors of up to 2e-4 at k = 65,536, and of up to 1e-2 at k = 1,000,000. Totals
/// that are not compensated have errors of 1e-4 at k = 4,000,000.
TEST_CASE("compiled product: long sums are precise in every plan") {
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  int number = 0;
  for (const auto& [k, m, most] : {std::tuple(65'537, 1, 5e-6),
                                   {65'537, 3, 5e-6},
                                   {65'537, 40, 5e-6},
                                   {1'000'000, 1, 5e-6},
                                   {4'000'000, 9, 5e-6}})
    for (const LaneAxis lhs : axes)
      for (const LaneAxis rhs : axes) {
        const bool known = ++number % 2 == 0;
        const GemmProblem p{.m = m,
                            .n = 49,
                            .k = k,
                            .lhs = lhs,
                            .rhs = rhs,
                            .known = true,
                            .open = known ? "" : "k",
                            .equal_terms = true};
        cpu::GemmQuery q{.cpu = info_of(target), .batch = 1, .m = m, .n = p.n, .lhs_axis = lhs, .rhs_axis = rhs};
        q.cpu.slow_last_level = number % 3 == 0, q.lhs_loadable = m != 3;
        if (known) q.k = k;
        const GemmPlan plan = cpu::plan_gemm(q);
        CAPTURE(p.text(), to_string(plan));
        CHECK(error_of(p, plan, target) < most);
      }
  const GemmProblem pairs{.storage = bf16, .batch = 2, .m = 9, .n = 40, .k = 65'536, .equal_terms = true};
  cpu::GemmTile tile = cpu::choose_tile(f32, info_of(target));
  tile.operands = cpu::GemmTile::Operands::pairs;
  CHECK(error_of(pairs, {.tile = tile}, target) < 2e-5);  // two roundings per step
}

TEST_CASE("compiled product: long sums by tiles") {
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  const CpuInfo cpu = info_of(target);
  if (!cpu.tiles) return;
  for (const DType dtype : {bf16, f32})
    for (const auto& [k, most] : {std::pair(20'000, 5e-6), {100'000, 5e-6}})
      for (const bool known : {false, true}) {
        const GemmProblem p{
            .storage = dtype, .m = 96, .n = 64, .k = k, .known = true, .open = known ? "" : "k", .equal_terms = true};
        cpu::GemmQuery q{.cpu = cpu, .batch = 1, .m = p.m, .n = p.n};
        q.tiles = dtype == bf16, q.split_bf16 = dtype == f32;
        if (known) q.k = k;
        const GemmPlan plan = cpu::plan_gemm(q);
        CHECK(plan.strategy == cpu::GemmStrategy::tiles);
        CAPTURE(p.text(), to_string(plan));
        if (plan.panel > 0) continue;  // panels have kernels of their own
        CHECK(error_of(p, plan, target) < most);
      }
}

}  // namespace
}  // namespace lathe::testing
