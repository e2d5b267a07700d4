#pragma once

#include <string>

namespace lathe::shard {

/// Whether gathered parameters are kept from the forward pass for the backward pass, or gathered there again: fewer
/// bytes sent, or less memory. `decide`: kept where a step fits its memory budget so (passes/gather_choice.h),
/// gathered again where it does not or there is no budget.
enum class SecondGather : unsigned char { decide, always, never };

/// Whether keys and values of a split sequence go around in a ring instead of being gathered (passes/shard/ring).
/// `decide`: where that is predicted to be faster or alone fits a memory budget, with sizes that are known
/// (passes/ring_choice.h); gathered else.
enum class RingWay : unsigned char { decide, always, never };

/// What lies as parts along an axis of the mesh between steps, "" for nothing, and how values go around.
struct ShardOptions {
  /// The axis over which optimizer states are split that have the shape of a parameter (ZeRO 1). Gradients are
  /// scattered while they are combined, each process updates its part, and updated parameters are gathered.
  std::string states = {};
  /// The axis over which parameters are split, and their states (ZeRO 3, fully sharded data parallel). A parameter is
  /// gathered where it is used.
  std::string parameters = {};
  /// Of parameters, for the backward pass. What would be gathered again at once is kept in any case
  /// (passes/shard/plan/gather_plan.h).
  SecondGather second_gather = SecondGather::decide;
  RingWay ring = RingWay::decide;

  bool operator==(const ShardOptions&) const = default;
};

}  // namespace lathe::shard
