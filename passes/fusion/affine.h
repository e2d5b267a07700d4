#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"

namespace lathe {

/// How one dim of a value is indexed by the dims of another index space: `scale * index[dim] + offset`, or `offset`
/// alone where dim is -1.
using AffineComponent = ir::IndexMap::Component;
/// One component for each dim of a value.
using AffineIndex = std::vector<AffineComponent>;

bool operator==(const AffineComponent& a, const AffineComponent& b);

/// Index i for dim i.
AffineIndex identity_index(int rank);
/// The index of an operand of shape `operand` under NumPy's broadcasting to a result indexed by `index`: dims are
/// aligned from the last, and a dim of size 1 that the result stretches is read at 0.
AffineIndex broadcast_index(const Shape& operand, const Shape& result, const AffineIndex& index);
/// The index of a view's input, given the index of the view. `map` is not a reshape.
AffineIndex through_view(const ir::IndexMap& map, const AffineIndex& index);

/// A linear form over the dims of an iteration domain: sum of coefficient[d] * index[d], plus offset. Addresses,
/// iota values and random counters are linear forms.
struct Linear {
  std::vector<Dim> coefficients;
  Dim offset = 0;
  bool operator==(const Linear&) const = default;
};

/// The position, in elements, of a value with `strides` and `offset` at `index`, over a domain of `rank` dims.
Linear linear_form(const AffineIndex& index, const std::vector<Dim>& strides, const Dim& offset, int rank);

/// Where a value's elements lie: in the buffer of `base`, the first node up the chain of views that is no view, at
/// `offset` elements plus the strides of the value's type.
struct Placement {
  ir::ValueId base;
  Dim offset = 0;
};

/// Whether a node only shows elements of its operand (a View that is not `contiguous`).
bool is_alias(const ir::Node& node);
/// The value whose elements `id` shows: the first up the chain of views that is none.
ir::ValueId through_aliases(const ir::Graph& graph, ir::ValueId id);
/// Whether the first operand is looked up by address, so that it must lie in memory: a table, a random state, what
/// processes exchange.
bool reads_by_address(const ir::Node& node);
/// The placement of every value of a graph.
std::vector<Placement> placements(const ir::Graph& graph);

}  // namespace lathe
