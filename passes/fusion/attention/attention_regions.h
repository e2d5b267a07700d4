#pragma once

#include <map>

#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

/// The attention regions of a plan in the making. Before nodes are placed, each group of find_attention becomes a
/// region of its own; the contractions that end it are placed like any other, so that epilogues join them.
class AttentionRegions {
 public:
  AttentionRegions() = default;
  /// Adds the regions to the plan and decides what is inlined in them.
  AttentionRegions(const ir::Graph& graph, FusionPlan& plan, const AttentionOptions& options);

  /// The attention region whose values a contraction sums; -1: none.
  int region_summed_by(ir::ValueId contraction) const;

 private:
  std::map<ir::ValueId, int> region_of_output_;
};

/// Makes the product regions that end an attention parts of it.
void absorb_output_products(FusionPlan& plan);

}  // namespace lathe
