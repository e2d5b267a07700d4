#pragma once

#include <span>
#include <string_view>

#include "ir/hardware/cpu_info.h"
#include "passes/cpu/attention/blocks/attention_blocks.h"
#include "passes/cpu/gemm/plan/product_sizes.h"
#include "passes/cpu/vector_loops.h"
#include "passes/fusion/attention/attention_rates.h"

namespace lathe::cpu {

/// The tuned sizes of all CPU schedules. Each default is next to the schedule that uses it.
struct CpuSizes {
  ProductSizes products = {};
  AttentionBlocks attention = {};
  VectorLoops loops = {};
  AttentionCosts attention_costs = {};
  bool operator==(const CpuSizes&) const = default;
};

/// Sizes measured on one kind of CPU, which replace the defaults.
struct MeasuredSizes {
  std::string_view cpu;  ///< CpuInfo::name
  bool tiles = false;    ///< CpuInfo::tiles during the measurement: an OS may deny AMX
  CpuSizes sizes;
};

/// Returns all measured sizes.
std::span<const MeasuredSizes> measured_sizes();
/// Returns the sizes measured on this CPU, or the defaults.
CpuSizes cpu_sizes(const CpuInfo& cpu);

}  // namespace lathe::cpu
