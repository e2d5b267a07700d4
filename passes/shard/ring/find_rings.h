#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/support/location.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/mesh_axis.h"
#include "ir/tensor/node_map.h"

/// Attentions of a process's graph whose keys and values are gathered, and that can use ring attention instead.
namespace lathe::shard {

/// The dims of a graph's values that run along the positions of gathered keys.
struct KeyDims {
  Dim keys = 0;          ///< number of positions of all processes
  ir::NodeMap<int> dim;  ///< by node: the dim that holds them, alone or with others; -1: none

  int of(ir::ValueId id) const { return dim[id]; }
  bool has(ir::ValueId id) const { return of(id) >= 0; }
};

/// Whether the op of a value with keys that does not depend on gathered values computes it for one block; otherwise
/// the block is taken from the whole value.
bool goes_by_blocks(const ir::Graph& graph, const KeyDims& keys, ir::ValueId id);
/// weights = exp(scores - maximum) / sum, along the keys. A floor of the maximum is applied after `maximum`, and a
/// floor of the sum after `sum`.
struct RingSoftmax {
  ir::ValueId scores, maximum, difference, exponentials, sum, weights;
};

/// A matmul that sums weights, or a value that is linear in them, over keys: o = weights * v.
struct RingResult {
  ir::ValueId product;
  int operand;  ///< the one that depends on weights
  int softmax;  ///< index in the ring's softmaxes
};

/// One attention, or several that share keys or values, with their gradient if the graph has it.
struct Ring {
  ir::MeshAxis axis;
  std::shared_ptr<const KeyDims> keys;
  std::vector<ir::ValueId> gathers;  ///< of keys and of values
  ir::NodeMap<bool> inside;          ///< by node: it has keys and depends on gathered values
  std::vector<RingSoftmax> softmaxes;
  std::vector<RingResult> results;
  /// The gradients: nodes that sum over keys, or scatter to the processes of the keys, and need the results first.
  std::vector<ir::ValueId> late;

  bool is_inside(ir::ValueId id) const { return inside[id]; }
};

/// An attention whose keys stay gathered.
struct GatheredAttention {
  Location loc;  ///< of its maximum
  std::string why;
};

struct RingSearch {
  std::vector<Ring> rings;
  std::vector<GatheredAttention> gathered;
};

/// Finds the attentions of a process's graph of primitives that can use ring attention. Their keys and values must be
/// gathered over one axis, in one block per process, and be used along the keys only in one softmax, matmuls, sums,
/// and elementwise. Sums over keys in the backward pass must need no other sum over them: those of weight times
/// gradient are computed from results before (passes/fusion/attention/attention_delta.h).
RingSearch find_rings(const ir::Graph& graph);

}  // namespace lathe::shard
