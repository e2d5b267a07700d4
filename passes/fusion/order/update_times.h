#pragma once

#include <cstdint>
#include <vector>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Returns how many bytes of later sums hide a sum, so that it is complete when it is waited for: two buckets, one
/// that is collected while the other is sent.
std::int64_t hiding_bytes();

/// A sum over processes, and the position in the graph where all inputs of its region are available.
struct ProcessSum {
  int region;
  std::int32_t position;
  std::int64_t bytes;
};
/// Returns the sums of known size, in the order in which they may start. `made`: by region, that position.
std::vector<ProcessSum> known_sums(const FusionPlan& plan, const ir::Graph& graph,
                                   const std::vector<std::int32_t>& made);

/// When updates run whose gradients are summed over processes. At the end of the graph they would not wait, but until
/// then every summed gradient stays in memory, and no updated part is gathered. Directly after the sum they would
/// wait for it. So an update runs when two buckets of later sums are in flight, one that is collected while the other
/// is sent:
///
///   sums s0 s1 s2 s3, of a bucket each:   s0 s1 s2 update(s0) s3 update(s1) .. update(s2) update(s3)
class UpdateTimes {
 public:
  /// `made`: by region, the position in the graph where all its inputs are available.
  UpdateTimes(const FusionPlan& plan, const ir::Graph& graph, const std::vector<std::int32_t>& made);

  /// Whether the region computes a new state, or the part of one that is then gathered.
  bool updates(int region) const { return updates_[region]; }
  /// Whether the region gathers the parts of a new state in place.
  bool gathers(int region) const { return gathers_[region]; }
  /// Whether the region sums over processes.
  bool sums(int region) const { return hidden_from(region) > 0; }
  /// For a region that sums over processes, returns the position in the graph from which on enough later sums are in
  /// flight. It is past all positions if there are not enough of them or if bytes are unknown. 0 for other regions.
  std::int32_t hidden_from(int region) const { return hidden_from_[region]; }

 private:
  std::vector<bool> updates_, gathers_;
  std::vector<std::int32_t> hidden_from_;
};

}  // namespace lathe
