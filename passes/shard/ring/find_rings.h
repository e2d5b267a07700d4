#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/support/location.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/mesh_axis.h"

/// Attentions of a process's graph whose keys and values are gathered, and may go around in a ring instead.
namespace lathe::shard {

/// Where the positions of gathered keys run in the values of a graph.
struct KeyDims {
  Dim keys = 0;          ///< how many positions all processes have
  std::vector<int> dim;  ///< by node: the dim that holds them, alone or with others; -1: it has none

  int of(ir::ValueId id) const { return dim[static_cast<std::size_t>(id.index)]; }
  bool has(ir::ValueId id) const { return of(id) >= 0; }
};

/// Whether a value with keys that is made of nothing gathered is computed for a block of them by its op; else the
/// block is taken from all of it.
bool goes_by_blocks(const ir::Graph& graph, const KeyDims& keys, ir::ValueId id);
/// weights = exp(scores - maximum) / sum, along the keys. A maximum that is kept from falling further is behind
/// `maximum`, and such a sum behind `sum`.
struct RingSoftmax {
  ir::ValueId scores, maximum, difference, exponentials, sum, weights;
};

/// A product that sums weights, or what is linear in them, over keys: o = weights * v.
struct RingResult {
  ir::ValueId product;
  int operand;  ///< the one made of weights
  int softmax;  ///< of the ring's
};

/// One attention, or several that share keys or values, with their gradient where the graph has it.
struct Ring {
  ir::MeshAxis axis;
  std::shared_ptr<const KeyDims> keys;
  std::vector<ir::ValueId> gathers;  ///< of keys and of values
  std::vector<bool> inside;          ///< by node: it has keys and is made of what is gathered
  std::vector<RingSoftmax> softmaxes;
  std::vector<RingResult> results;
  /// What is summed over keys, or scattered to their processes, and needs the results first: the gradients.
  std::vector<ir::ValueId> late;

  bool is_inside(ir::ValueId id) const { return inside[static_cast<std::size_t>(id.index)]; }
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

/// Finds the attentions of a process's graph of primitives of which a ring can be made: their keys and values are
/// gathered over one axis, in one block a process, and what is done along the keys is one softmax, products, sums,
/// and what goes element by element. Sums over keys in the backward pass must need no other sum over them: those of
/// weight times gradient are taken from results before (passes/fusion/attention/result_dots.h).
RingSearch find_rings(const ir::Graph& graph);

}  // namespace lathe::shard
