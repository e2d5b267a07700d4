#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/mesh/mesh.h"
#include "ir/tensor/graph.h"

namespace lathe::shard {

/// A node of a graph to be sharded that is more than an identity: dim `dim` is split on one side of it only. A gather
/// is split before it and whole after it; a part is the reverse.
struct Cut {
  enum class Kind { gather, part } kind;
  int dim;
  std::string why;  ///< of a gather: the reader that needs all of it
};
struct CutGraph {
  ir::Graph graph;
  std::map<ir::ValueId, Cut> cuts;
};

/// Cuts dims that a value has twice, such as the sequence of an attention in the scores [B, h, T, T], if they are
/// named in `splits`. The first of both dims, that of queries, is split, or the one that no reduction folds. Along
/// the other one, that of keys, every process needs all of it. Keys and values are therefore gathered, once for all
/// readers. Their gradients, each process's share of a sum over its queries, are scattered, and positions of keys are
/// recomputed. Other nodes that take a part of such a dim take it from the whole: tokens[:, 1:] is computed by every
/// process.
///
///   %s: f32[B, h, T, T] = contract %q, %k
///   ->  %g = cut %k {gather, dim 2};  %s = contract %q, %g
///
/// `graph` has primitives only. Dims that no value has twice are unchanged, and so are those that a parameter has
/// twice.
CutGraph cut_sequences(const ir::Graph& graph, std::span<const Split> splits);

}  // namespace lathe::shard
