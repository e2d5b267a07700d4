#pragma once

#include "ir/hardware/cpu_info.h"

namespace lathe {

/// Attention costs per score (one row and one column), in multiply-adds at full speed. For tile_mma, the unit is a
/// hundredth of the cost of an unfused score without its matmuls. Fitted to measurements of bench_attention.
struct AttentionRates {
  double fused_scores, fused_sums;  ///< fused matmuls: per element of the depth of q and k, and of v
  double plain_products;            ///< unfused matmuls, per element of either depth
  double fused_points;              ///< fused: elementwise work per score
  double plain_points, far_points;  ///< unfused: elementwise work through memory, within and beyond the caches
  double row;                       ///< fused: packing, loading and storing, per row and element of its depth
  double diagonal;                  ///< columns that a causal row computes beyond half of them
  bool operator==(const AttentionRates&) const = default;
};
struct AttentionCosts {
  double fused_factor = 1.1;  ///< scales the cost of fused matmuls
  AttentionRates forward{1, 1, 1, 124, 193, 198, 9, 12};
  AttentionRates forward_bf16 = forward;  ///< fused with fma, although unfused bf16 matmuls may use tiles
  AttentionRates training{4, 3, 3, 148, 190, 275, 30, 20};
  AttentionRates forward_by_tiles = forward, training_by_tiles = training;  ///< bf16
  bool operator==(const AttentionCosts&) const = default;
};

/// Decides for each attention on this CPU whether fused code is faster: see attention_cost.h.
struct AttentionCostModel {
  CpuInfo cpu;
  AttentionCosts costs = {};
};

}  // namespace lathe
