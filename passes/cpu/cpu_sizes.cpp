#include "passes/cpu/cpu_sizes.h"

#include <algorithm>

namespace lathe::cpu {

namespace {

constexpr MeasuredSizes measured[] = {
    // bench_attention on the Xeon of docs/benchmarks.md: two threads of a shared server with AMX. bf16 matmuls, and
    // bf16 attentions, use AMX.
    {.cpu = "sapphirerapids",
     .tiles = true,
     .sizes = {.attention_costs = {.forward_bf16 = {1, 1, 0.5, 124, 160, 160, 9, 12},
                                   .training = {4, 3, 3, 148, 190, 275, 30, 14},
                                   .forward_by_tiles = {0.34, 0.34, 0.32, 75, 100, 112, 25, 30},
                                   .training_by_tiles = {4.1, 4.1, 5, 118, 100, 112, 182, 40}}}},
};

}  // namespace

std::span<const MeasuredSizes> measured_sizes() { return measured; }

CpuSizes cpu_sizes(const CpuInfo& cpu) {
  const auto* const found = std::ranges::find_if(
      measured, [&](const MeasuredSizes& entry) { return entry.cpu == cpu.name && entry.tiles == cpu.tiles; });
  return found == std::end(measured) ? CpuSizes{} : found->sizes;
}

}  // namespace lathe::cpu
