#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Plans the temporaries of one program again and again, for sizes as they come. Lifetimes do not depend on sizes and
/// are found once. Where a placement was searched for some sizes, each block lies on others; for other sizes it lies
/// on the same ones, and its offset is the highest of their ends: that takes microseconds. Only where memory is
/// wasted so is a placement searched again, by place_blocks(), and kept for the sizes that follow.
class MemoryPlanner {
 public:
  /// `program` must outlive it. `threads`: how many have scratch.
  explicit MemoryPlanner(const Program& program, int threads = 1);

  /// The plan for these elements of the program's buffers, which its dims give. It is good until the next call. One
  /// whose placement was searched is that of plan_memory(); what others waste against the lower bound is at most 3%
  /// of that, or as much as a search for other sizes did. UserError [dim_overflow].
  const MemoryPlan& plan(std::span<const std::int64_t> elements);
  /// How often a placement was searched.
  int searches() const { return searches_; }

 private:
  /// What each block lies on, in an order in which all that it lies on comes before it.
  struct Placement {
    std::vector<int> order;          ///< blocks
    std::vector<std::size_t> first;  ///< by position in the order: where its part of `below` begins
    std::vector<int> below;          ///< blocks
    double waste = 0;                ///< of the sizes that it was searched for, as a share of the lower bound
  };

  void find_sizes(std::span<const std::int64_t> elements);
  Placement placement() const;
  bool place_by(const Placement& placement);

  const Program& program_;
  int threads_;
  MemoryPlan plan_;
  std::vector<std::int64_t> change_;   ///< by launch: bytes that begin to live there, less those that cease to
  std::vector<Placement> placements_;  ///< the last one that served first
  int searches_ = 0;
};

}  // namespace lathe
