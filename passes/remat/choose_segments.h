#pragma once

#include <cstdint>
#include <optional>

#include "passes/remat/checkpoint_loops.h"

namespace lathe {

/// A pair of loops with the length of its segments, and the effect for one size of each dim.
struct SegmentChoice {
  LoopSegments loops;
  std::int64_t trips = 0;      ///< iterations
  double saved = 0, kept = 0;  ///< bytes of the values that are not saved, and of checkpoints and one segment
  double work = 0;             ///< rough number of operations of running the saver again

  double freed() const { return saved - kept; }
};

/// Chooses how many iterations to run again at a time. For T iterations, segments of k iterations take the bytes of
/// T / k checkpoints and of the values of k iterations. Of all k that divide T for all sizes of unknown dims, the
/// choice is the longest one that takes at most 1% of the saved bytes more than the best: recomputation costs one
/// more pass for any k, and longer segments have fewer launches. Returns nothing if no k frees memory.
std::optional<SegmentChoice> choose_segments(const ir::Graph& graph, const LoopPair& pair, const DimBindings& dims);

}  // namespace lathe
