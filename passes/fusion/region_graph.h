#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// What runs as one: an attention region stands for the product regions that end it as well.
inline int unit_of(const FusionPlan& plan, int region) {
  const int ends = plan.regions[static_cast<std::size_t>(region)].ends;
  return ends >= 0 ? ends : region;
}

/// Which regions read which, of a plan that may change all the while.
class RegionGraph {
 public:
  /// `reads` is by node, and stays as it is.
  RegionGraph(const FusionPlan& plan, const std::vector<std::vector<Read>>& reads);

  /// Whether one of the regions `from` is in the unit of `target`, or reads it directly or by way of others. It looks
  /// from both ends, region by region in turn: where one end is near the first or the last of a long graph, that end
  /// is soon exhausted.
  bool depends_on(const std::vector<int>& from, int target) const;

 private:
  /// One end of the search: the units found so far, those still to be followed.
  struct Frontier;
  void follow(int unit, bool to_readers, Frontier& frontier) const;

  const FusionPlan& plan_;
  const std::vector<std::vector<Read>>& reads_;
  std::vector<std::vector<ir::ValueId>> readers_;  // by node
};

}  // namespace lathe
