#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"

namespace lathe {

/// How one dim of a value is indexed by the dims of another index space: see ir::IndexMap.
using AffineComponent = ir::IndexMap::Component;
/// One component per dim of a value.
using AffineIndex = std::vector<AffineComponent>;

bool operator==(const AffineComponent& a, const AffineComponent& b);

/// Returns index i for dim i.
AffineIndex identity_index(int rank);
/// Returns the index of an operand of shape `operand` under NumPy's broadcasting to a result indexed by `index`: dims
/// are aligned from the last, and a dim of size 1 that the result stretches is read at 0.
AffineIndex broadcast_index(const Shape& operand, const Shape& result, const AffineIndex& index);
/// Returns the component in terms of the dims that `index` is in terms of.
AffineComponent composed(const AffineComponent& component, const AffineIndex& index);
/// Returns the index of a view's input, given the index of the view. `map` is not a reshape.
AffineIndex through_view(const ir::IndexMap& map, const AffineIndex& index);

/// A linear form over the dims of an iteration domain: sum of coefficient[d] * index[d], plus offset. Addresses,
/// iota values and random counters are linear forms.
struct Linear {
  std::vector<Dim> coefficients;
  Dim offset = 0;
  bool operator==(const Linear&) const = default;
};

/// Returns the position, in elements, of a value with `strides` and `offset` at `index`, over a domain of `rank`
/// dims.
Linear linear_form(const AffineIndex& index, const std::vector<Dim>& strides, const Dim& offset, int rank);

/// Returns whether a row-major traversal of some dims of `domain` advances the form by one fixed stride.
bool merges(const Linear& form, const std::vector<int>& dims, const Shape& domain);

/// Where a value's elements are stored: in the buffer of `base`, the first node up the chain of views that is not a
/// view, at `offset` elements plus the strides of the value's type.
struct Placement {
  ir::ValueId base;
  Dim offset = 0;
};

/// Whether a node is an alias of elements of its operand (a View that is not `contiguous`).
bool is_alias(const ir::Node& node);
/// Returns the value that `id` is an alias of: the first one up the chain of views that is not a view.
ir::ValueId through_aliases(const ir::Graph& graph, ir::ValueId id);
/// Whether the first operand is read by address and must therefore be in memory: a table, a random state, the operand
/// of a collective.
bool reads_by_address(const ir::Node& node);
/// Returns the placement of every value of a graph.
ir::NodeMap<Placement> placements(const ir::Graph& graph);

}  // namespace lathe
