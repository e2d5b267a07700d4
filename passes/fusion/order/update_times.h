#pragma once

#include <cstdint>
#include <vector>

#include "passes/fusion/fusion.h"

namespace lathe {

/// Behind so many bytes of sums a sum is over when it is waited for: two buckets, one that is collected while
/// the other is sent.
std::int64_t hiding_bytes();

/// A value that processes sum, and where in the graph all that its region reads is there.
struct ProcessSum {
  int region;
  std::int32_t position;
  std::int64_t bytes;
};
/// Those whose sizes are known, in the order in which they may begin. `made`: by region, that position.
std::vector<ProcessSum> known_sums(const FusionPlan& plan, const ir::Graph& graph,
                                   const std::vector<std::int32_t>& made);

/// When updates may come whose gradients are summed over processes. At the end of the graph they would wait for
/// nobody, but until then every summed gradient stays in memory, and no updated part is gathered. Right behind the
/// sum they would wait for it. So an update comes when two buckets of later sums are on their way, one that is
/// collected while the other is sent:
///
///   sums s0 s1 s2 s3, of a bucket each:   s0 s1 s2 update(s0) s3 update(s1) .. update(s2) update(s3)
class UpdateTimes {
 public:
  /// `made`: by region, the position in the graph where all that it reads is there.
  UpdateTimes(const FusionPlan& plan, const ir::Graph& graph, const std::vector<std::int32_t>& made);

  /// Whether the region computes a new state, or the part of one that is then gathered.
  bool updates(int region) const { return updates_[static_cast<std::size_t>(region)]; }
  /// Whether the region gathers the parts of a new state where that lies.
  bool gathers(int region) const { return gathers_[static_cast<std::size_t>(region)]; }
  /// Whether the region sums over processes.
  bool sums(int region) const { return hidden_from(region) > 0; }
  /// For a region that sums over processes the position in the graph from which on enough is under way behind it,
  /// beyond all positions where so much does not come or bytes are unknown; 0 for other regions.
  std::int32_t hidden_from(int region) const { return hidden_from_[static_cast<std::size_t>(region)]; }

 private:
  std::vector<bool> updates_, gathers_;
  std::vector<std::int32_t> hidden_from_;
};

}  // namespace lathe
