#pragma once

#include <map>
#include <vector>

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

  /// Records that a product region computes an output of an attention region.
  void add_output(int attention, int product);
  /// Returns the unit that runs as one: an attention region includes the regions of its output matmuls.
  int unit_of(int region) const {
    const auto at = static_cast<std::size_t>(region);
    return at < attention_of_.size() && attention_of_[at] >= 0 ? attention_of_[at] : region;
  }
  /// Returns the product regions that compute the outputs of an attention region.
  const std::vector<int>& outputs_of(int attention) const;

  /// Removes regions without members from the plan and renumbers the others, here too.
  void drop_empty_regions(FusionPlan& plan);
  /// Moves the product regions of output matmuls into their attention regions.
  void absorb_outputs(FusionPlan& plan);

 private:
  std::map<ir::ValueId, int> region_of_output_;
  std::map<int, std::vector<int>> outputs_;  // by attention region
  std::vector<int> attention_of_;            // by product region, -1 for all others; may end before the last region
};

}  // namespace lathe
