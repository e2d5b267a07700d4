#pragma once

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/shard/mesh.h"

namespace lathe::shard {

/// What the axes of a mesh split where nobody says it, by their names:
///
///   data, fsdp   B, the rows of a batch
///   model        h, d_ff and vocab: heads, feed-forward, vocabulary, each as far as the graph can be divided by it
///
/// Other axes split nothing.
struct DefaultSplits {
  std::vector<Split> splits;
  std::vector<std::string> left_out;  ///< "vocab:model: 50257 does not divide over model=2 on dim 0 of .."
};
/// Of a model's forward graph. A batch that does not divide is left to shard().
DefaultSplits default_splits(const ir::Graph& forward, const Mesh& mesh);

}  // namespace lathe::shard
