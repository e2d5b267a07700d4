#pragma once

#include <vector>

#include "ir/support/containers/shared_list.h"
#include "passes/fusion/affine.h"

namespace lathe {

/// An index that many reads share: in most of them it is the reader's own.
using SharedIndex = SharedList<AffineComponent>;

/// A value that a node reads from memory or from its own region, after views and inlined nodes have been looked
/// through.
struct Read {
  ir::ValueId value;   ///< not a view, not inlined
  SharedIndex index;   ///< in terms of the reader's index space; meaningless when not affine
  bool affine = true;  ///< false: through a reshape or a data-dependent index, so it must be in memory
};

/// One operand as a node reads it: the index in terms of the node's index space.
struct OperandRead {
  ir::ValueId operand;
  SharedIndex index;
  bool affine = true;
};

/// Returns how the node reads its operands, in terms of its index space: the dims of its result, or for a reduction
/// those of its operand. Not for contractions, whose operands are always in memory or inlined whole.
std::vector<OperandRead> operand_reads(const ir::Graph& graph, const ir::Node& node);
/// Whether a node is a gather from iota: it returns the indices themselves, and an error if one is out of range. No
/// table is read.
bool is_index_check(const ir::Graph& graph, const ir::Node& node);

/// Whether a node is an iota of one dim: its elements are their own positions, in every view of it.
bool is_flat_iota(const ir::Node& node);
/// Whether a view's operand must be materialized: the view changes the shape, and its elements are not their
/// positions.
bool reshapes_memory(const ir::Graph& graph, const ir::Node& view);

/// Returns the index space of a node, as operand_reads uses it.
const Shape& index_space(const ir::Graph& graph, const ir::Node& node);

/// Returns all reads of a node, through views and through the nodes that `inlined` marks.
std::vector<Read> reads_of(const ir::Graph& graph, ir::ValueId id, const ir::NodeMap<bool>& inlined);
/// Whether a region computes the value: it is no view, argument or constant, and `inlined` does not mark it.
bool is_computed_in_region(const ir::Graph& graph, ir::ValueId id, const ir::NodeMap<bool>& inlined);
/// The reads of each node that a region computes; nothing for all others.
using NodeReads = ir::NodeMap<std::vector<Read>>;
NodeReads all_reads(const ir::Graph& graph, const ir::NodeMap<bool>& inlined);

}  // namespace lathe
