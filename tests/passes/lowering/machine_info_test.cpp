#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "passes/cpu/gemm/gemm.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "tests/support/kernels/cpu_infos.h"

using namespace lathe;

TEST_CASE("machines: entries have unique names, refer to earlier entries, and list growing cache sizes") {
  std::set<std::string_view> names;
  for (const CpuInfo& cpu : cpu_infos()) {
    INFO(cpu.name);
    CHECK((cpu.basis.empty() || names.contains(cpu.basis)));
    CHECK(names.insert(cpu.name).second);
    CHECK(find_cpu_info(cpu.name) == &cpu);
    CHECK(cpu_features(cpu).find(",,") == std::string::npos);
    CHECK((cpu.l1.share() < cpu.l2.share() && cpu.l2.bytes < cpu.last_level.bytes));
    CHECK((!cpu.tiles || cpu.vectors.bits == 512));
    CHECK_FALSE(to_string(cpu).empty());
  }
  CHECK(find_cpu_info("i386") == nullptr);
  CHECK(CpuInfo{}.vectors == find_cpu_info(CpuInfo{}.name)->vectors);
  for (const GpuInfo& gpu : gpu_infos()) {
    INFO(gpu.name);
    CHECK(&gpu_info(gpu.name) == &gpu);
    CHECK(gpu.static_shared_bytes <= gpu.most_shared_bytes);
    CHECK_FALSE(to_string(gpu).empty());
  }
  CHECK(gpu_info("sm_86") == GpuInfo{});
  CHECK(gpu_info("sm_90a").wgmma);
}

TEST_CASE("machines: the entry of a CPU follows from its name and features") {
  const auto named = [](std::string_view name, const std::string& more = "") {
    const CpuInfo* const entry = find_cpu_info("x86-64-v4");
    return cpu_info_for(name, cpu_features(*entry) + more, 512);
  };
  const std::string amx = ",+avx512bf16,+amx-tile,+amx-bf16";
  CHECK(named("x86-64-v4") == *find_cpu_info("x86-64-v4"));
  CHECK(named("icelake-server") == *find_cpu_info("x86-64-v4"));
  CHECK(named("x86-64-v4", amx) == *find_cpu_info("sapphirerapids"));
  CHECK(named("graniterapids", amx) == *find_cpu_info("sapphirerapids"));
  CHECK(named("znver4", ",+avx512bf16").dot_pairs);
  CHECK_FALSE(named("znver4").dot_pairs);
  CHECK_FALSE(named("cooperlake", ",+avx512bf16").dot_pairs);
  // The OS denies AMX: the other properties of the machine stay the same.
  const CpuInfo refused = named("sapphirerapids", ",+avx512bf16,+amx-tile");
  CHECK((!refused.tiles && refused.slow_last_level));
  CHECK(cpu::cpu_sizes(refused) == cpu::CpuSizes{});
  // Shorter vectors than the CPU has.
  CHECK(cpu_info_for("znver4", cpu_features(*find_cpu_info("znver4")), 128) == *find_cpu_info("x86-64-v2"));
  CHECK_THROWS_AS(cpu_info_for("x86-64-v4", "", 64), InternalError);
}

TEST_CASE("machines: plans follow the description") {
  cpu::GemmQuery query{.cpu = unnamed_cpu(), .batch = 1, .m = 32, .n = 256, .k = 512, .rhs_axis = LaneAxis::row};
  const auto with = [&](const auto& change) {
    cpu::GemmQuery other = query;
    change(other.cpu);
    return to_string(cpu::plan_gemm(other));
  };
  const std::string usual = to_string(cpu::plan_gemm(query));
  CHECK(with([](CpuInfo& cpu) { cpu.l2.shared_by = 1; }) == usual);
  CHECK(with([](CpuInfo& cpu) { cpu.vectors = {256, 16}; }) != usual);
  query.m = 2, query.k = 8192;
  CHECK(with([](CpuInfo& cpu) { cpu.cores = 2; }) != to_string(cpu::plan_gemm(query)));
  query.m = 300, query.n = 256, query.k = 256;
  CHECK(with([](CpuInfo& cpu) { cpu.l2.bytes /= 8; }) != to_string(cpu::plan_gemm(query)));
  query.lhs_loadable = false, query.n = 512;
  cpu::GemmQuery tuned = query;
  tuned.tuned.limits.most_packed_left = 256;
  CHECK(to_string(cpu::plan_gemm(tuned)) != to_string(cpu::plan_gemm(query)));
  query.lhs_loadable = true, query.lhs_axis = LaneAxis::row;
  tuned = query;
  tuned.tuned.limits.scattered_rows = 256;
  CHECK(to_string(cpu::plan_gemm(tuned)) != to_string(cpu::plan_gemm(query)));
  const cpu::GemmTile tile =
      cpu::choose_tile(f32, unnamed_cpu(), {.usual = {.depth = 256, .rows = 96, .columns = 48}});
  CHECK((tile.kc == 256 && tile.mc == 96 && tile.nc == 48));
}

namespace {

using cpu::ProductSizes;

/// Returns the plans of many matmuls as a list of numbers.
std::vector<std::int64_t> numbers_of_plans(const CpuInfo& cpu, const ProductSizes& tuned) {
  const cpu::GemmTile usual = cpu::choose_tile(f32, cpu, tuned.fma);
  std::vector<std::int64_t> numbers{usual.kc, usual.mc, usual.nc};
  for (const std::int64_t m : {0, 1, 3, 12, 24, 48, 100, 200, 400, 600, 1500, 5000, 12000})
    for (const std::int64_t n : {48, 64, 100, 256, 500, 1200, 5000, 20000})
      for (const std::int64_t k : {32, 64, 100, 300, 700, 2000, 20000})
        for (int which = 0; which < 64; ++which) {
          const auto is = [&](int bit) { return (which >> bit & 1) != 0; };
          const auto axis = [&](int bit) { return is(bit) ? LaneAxis::row : LaneAxis::k; };
          if ((is(2) && is(5)) || (is(4) && !cpu.tiles)) continue;  // the other combinations are enough
          const cpu::GemmPlan plan = cpu::plan_gemm({.cpu = cpu,
                                                     .tuned = tuned,
                                                     .batch = is(5) ? std::optional<std::int64_t>(1) : std::nullopt,
                                                     .m = m > 0 ? std::optional(m) : std::nullopt,
                                                     .n = n,
                                                     .k = k,
                                                     .lhs_axis = axis(0),
                                                     .rhs_axis = axis(1),
                                                     .lhs_loadable = !is(2),
                                                     .rhs_loadable = !is(2) || !is(0),
                                                     .lhs_run = is(1) && !is(3) ? 1 << 30 : 9,
                                                     .lhs_shared = is(3),
                                                     .rhs_shared = is(3),
                                                     .rhs_fixed = is(3) && is(5),
                                                     .rhs_kept = is(3) && is(5),
                                                     .tiles = cpu.tiles && is(4),
                                                     .split_bf16 = cpu.tiles && !is(4),
                                                     .epilogue_small = !is(3)});
          for (const std::int64_t number :
               {std::int64_t{plan.tile.mr}, std::int64_t{plan.tile.nv}, std::int64_t{plan.tile.kc},
                std::int64_t{plan.tile.mc}, std::int64_t{plan.tile.nc}, static_cast<std::int64_t>(plan.lhs),
                static_cast<std::int64_t>(plan.rhs), static_cast<std::int64_t>(plan.strategy),
                std::int64_t{plan.copies_left}, std::int64_t{plan.splits}, std::int64_t{plan.panel},
                std::int64_t{plan.prefetch_right}, std::int64_t{plan.register_epilogue},
                std::int64_t{plan.columns_in_turn}, plan.overlap_depth, std::int64_t{plan.remainder},
                std::int64_t{plan.prefetch_steps}, plan.least_rows, std::int64_t{plan.start_rows}})
            numbers.push_back(number);
        }
  return numbers;
}

/// A CPU and the sizes that its plans use.
struct Tuned {
  CpuInfo cpu;
  ProductSizes sizes = {};
};

/// Returns the indices of the numbers in a part of the sizes that affect no plan on these CPUs. All numbers of a part
/// have one type and are contiguous.
template <class Number, class Part>
std::set<std::size_t> ignored(Part ProductSizes::* part, const std::vector<Tuned>& cpus) {
  std::set<std::size_t> left;
  for (std::size_t i = 0; i < sizeof(Part) / sizeof(Number); ++i) left.insert(i);
  for (const auto& [cpu, sizes] : cpus) {
    const std::vector<std::int64_t> usual = numbers_of_plans(cpu, sizes);
    std::erase_if(left, [&](std::size_t i) {
      ProductSizes other = sizes;
      auto* const numbers = reinterpret_cast<Number*>(&(other.*part));
      numbers[i] = std::max<Number>(numbers[i] / 3, 1);
      return numbers_of_plans(cpu, other) != usual;
    });
  }
  return left;
}

}  // namespace

TEST_CASE("machines: every product size affects matmul plans") {
  CpuInfo far = unnamed_cpu(), small = unnamed_cpu();
  far.slow_last_level = true;
  small.l2.bytes /= 16;
  const CpuInfo& amx = *find_cpu_info("sapphirerapids");
  ProductSizes large;  // blocks that are halved until they fit in scratch memory
  large.tiles.packs_right = large.tiles.packs_right_rows = {1024, 2048, 2048};
  const std::set<std::size_t> none;
  CHECK(ignored<int>(&ProductSizes::fma, {{far}, {unnamed_cpu()}, {*find_cpu_info("x86-64-v3")}}) == none);
  CHECK(ignored<int>(&ProductSizes::tiles, {{amx}, {amx, large}}) == none);
  CHECK(ignored<std::int64_t>(&ProductSizes::limits, {{far}, {amx}, {unnamed_cpu()}, {small}}) == none);
}

TEST_CASE("machines: measured sizes belong to known CPUs and differ from the defaults") {
  std::set<std::pair<std::string_view, bool>> names;
  for (const cpu::MeasuredSizes& entry : cpu::measured_sizes()) {
    INFO(entry.cpu);
    CHECK(names.emplace(entry.cpu, entry.tiles).second);
    CHECK(entry.sizes != cpu::CpuSizes{});
    REQUIRE(find_cpu_info(entry.cpu));
    CpuInfo cpu = *find_cpu_info(entry.cpu);
    CHECK((cpu.tiles || !entry.tiles));
    cpu.tiles = entry.tiles;
    CHECK(cpu::cpu_sizes(cpu) == entry.sizes);
  }
  CHECK(cpu::cpu_sizes(unnamed_cpu()) == cpu::CpuSizes{});
}

TEST_CASE("machines: rejects GPUs whose warp size differs from the loop IR") {
  GpuInfo gpu = gpu_info("sm_90a");
  gpu.warp_threads = 64;
  CHECK_THROWS_AS(gpu_machine(gpu), InternalError);
}

TEST_CASE("machines: GPUs compute larger row chunks, and dot products prefetch at their distance") {
  CHECK(gpu_machine(gpu_info("sm_80")).chunks.least_rows > cpu_machine(unnamed_cpu()).chunks.least_rows);
  const cpu::GemmPlan plan = cpu::plan_gemm(
      {.cpu = unnamed_cpu(), .tuned = {.prefetch_bytes = 128}, .batch = 1, .m = 1, .n = 256, .k = 512});
  CHECK((plan.strategy == cpu::GemmStrategy::skinny_dot && plan.prefetch_bytes == 128));
}

TEST_CASE("machines: each has a schedule for every kind of region") {
  for (const Machine& machine :
       {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_80")), gpu_machine(gpu_info("sm_90a"))})
    for (int kind = 0; kind < region_kinds; ++kind) {
      const auto of = static_cast<RegionKind>(kind);
      if (of == RegionKind::collective || of == RegionKind::loop) continue;  // not computed by kernels of their own
      INFO(name(static_cast<RegionKind>(kind)));
      CHECK(machine.schedules.contains(static_cast<RegionKind>(kind)));
    }
}
