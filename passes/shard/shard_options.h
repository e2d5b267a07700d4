#pragma once

#include <string>

namespace lathe::shard {

/// What lies as parts along an axis of the mesh between steps: "" for nothing.
struct ShardOptions {
  /// The axis over which optimizer states are split that have the shape of a parameter (ZeRO 1). Gradients are
  /// scattered while they are combined, each process updates its part, and updated parameters are gathered.
  std::string states = {};
  /// The axis over which parameters are split, and their states (ZeRO 3, fully sharded data parallel). A parameter is
  /// gathered where it is used.
  std::string parameters = {};
  /// Parameters are gathered once more for the backward pass, instead of kept since the forward pass.
  bool gather_again = true;

  bool operator==(const ShardOptions&) const = default;
};

}  // namespace lathe::shard
