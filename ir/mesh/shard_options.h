#pragma once

#include <string>

namespace lathe::shard {

/// Whether gathered parameters are kept from the forward pass for the backward pass, or gathered again there: fewer
/// bytes sent, or less memory. `decide`: kept if the step then fits its memory budget
/// (passes/compile/gather_choice.h); gathered again if not, or without a budget.
enum class SecondGather : unsigned char { decide, always, never };

/// Whether keys and values of a split sequence use ring attention instead of being gathered (passes/shard/ring).
/// `decide`: if the ring is predicted to be faster, or is the only way to fit a memory budget, for known sizes
/// (passes/compile/ring_choice.h); otherwise gathered.
enum class RingWay : unsigned char { decide, always, never };

/// The mesh axes over which states and parameters are sharded between steps ("": not sharded), and how values are
/// communicated.
struct ShardOptions {
  /// The axis over which optimizer states with the shape of a parameter are sharded (ZeRO-1). Gradients are
  /// reduce-scattered, each process updates its shard, and updated parameters are gathered.
  std::string states = {};
  /// The axis over which parameters and their states are sharded (ZeRO-3, fully sharded data parallel). A parameter
  /// is gathered where it is used.
  std::string parameters = {};
  /// For parameters in the backward pass. Values that would be gathered again immediately are kept in any case
  /// (passes/shard/plan/gather_plan.h).
  SecondGather second_gather = SecondGather::decide;
  RingWay ring = RingWay::decide;

  bool operator==(const ShardOptions&) const = default;
};

}  // namespace lathe::shard
