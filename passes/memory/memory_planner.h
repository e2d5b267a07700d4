#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Plans the temporaries of one program repeatedly, for changing sizes. Lifetimes do not depend on sizes and are
/// found once. A placement found for some sizes has each block above certain other blocks. For other sizes the same
/// blocks are below it, and its offset is the highest of their ends, which takes microseconds. Only if that wastes
/// memory does place_blocks() search a new placement, which is kept for later sizes.
class MemoryPlanner {
 public:
  /// `program` must outlive it. `threads`: the number of threads with scratch.
  explicit MemoryPlanner(const Program& program, int threads = 1);

  /// Returns the plan for these elements of the program's buffers, as given by its dims. It is valid until the next
  /// call. If its placement was searched, it equals that of plan_memory(). Other plans waste at most 3% of the lower
  /// bound, or as much as the search for other sizes did. Throws UserError [dim_overflow].
  const MemoryPlan& plan(std::span<const std::int64_t> elements);
  /// Returns how often a placement was searched.
  int searches() const { return searches_; }

 private:
  /// The blocks below each block, in an order in which they come before it.
  struct Placement {
    std::vector<int> order;          ///< blocks
    std::vector<std::size_t> first;  ///< by position in the order: where its part of `below` starts
    std::vector<int> below;          ///< blocks
    double waste = 0;                ///< for the sizes of the search, as a share of the lower bound
  };

  void find_sizes(std::span<const std::int64_t> elements);
  Placement placement() const;
  bool place_by(const Placement& placement);

  const Program& program_;
  int threads_;
  MemoryPlan plan_;
  std::vector<std::int64_t> change_;   ///< by launch: bytes that become live there, minus those that no longer are
  std::vector<Placement> placements_;  ///< most recently used first
  int searches_ = 0;
};

}  // namespace lathe
