#pragma once

#include <string>
#include <vector>

#include "ir/mesh/mesh.h"
#include "ir/tensor/graph.h"

namespace lathe::shard {

/// The dims that the axes of a mesh split by default, by the names of the axes:
///
///   data, fsdp   B, the rows of a batch
///   model        h, d_ff and vocab: heads, feed-forward, vocabulary, each if the graph can be split by it
///
/// Other axes split nothing.
struct DefaultSplits {
  std::vector<Split> splits;
  std::vector<std::string> left_out;  ///< "vocab:model: 50257 does not divide over model=2 on dim 0 of .."
};
/// Returns the default splits of a model's forward graph. shard() checks whether the batch divides.
DefaultSplits default_splits(const ir::Graph& forward, const Mesh& mesh);

}  // namespace lathe::shard
