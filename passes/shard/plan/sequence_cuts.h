#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/tensor/graph.h"
#include "passes/shard/mesh.h"

namespace lathe::shard {

/// What a node of a graph that is to be divided stands for beside an identity: dim `dim` is split on one side of it
/// alone. A gather is split before it and whole behind it; a part the other way round.
struct Cut {
  enum class Kind { gather, part } kind;
  int dim;
  std::string why;  ///< of a gather: who takes all of it
};
struct CutGraph {
  ir::Graph graph;
  std::map<ir::ValueId, Cut> cuts;
};

/// A dim that meets itself, as the sequence of an attention does in the scores [B, h, T, T], is split where it is
/// named in `splits`: the first of both dims, that of queries, or the one that no reduction folds. Along the other
/// one, that of keys, every process takes all of it. So keys and values are gathered, once for all that read them;
/// their gradients, each process's share of a sum over its queries, are scattered; positions of keys are counted
/// again. What else takes some of such a dim takes it from the whole: tokens[:, 1:] is computed by every process.
///
///   %s: f32[B, h, T, T] = contract %q, %k
///   ->  %g = cut %k {gather, dim 2};  %s = contract %q, %g
///
/// `graph` is one of primitives. Dims that do not meet themselves are left alone, and those of a parameter that has
/// one twice.
CutGraph cut_sequences(const ir::Graph& graph, std::span<const Split> splits);

}  // namespace lathe::shard
