#pragma once

#include <map>

#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

/// The attention regions of a plan under construction. Before nodes are placed, each group of find_attention becomes
/// a region. The output contractions are placed like any other nodes, so that epilogues join them.
class AttentionRegions {
 public:
  AttentionRegions() = default;
  /// Adds the regions to the plan and decides which nodes are inlined in them.
  AttentionRegions(const ir::Graph& graph, FusionPlan& plan, const AttentionSearchOptions& options);

  /// Returns the attention region whose values a contraction sums, or -1.
  int region_summed_by(ir::ValueId contraction) const;

 private:
  std::map<ir::ValueId, int> region_of_output_;
};

/// Makes the product regions of output matmuls parts of their attention regions.
void absorb_output_products(FusionPlan& plan);

}  // namespace lathe
