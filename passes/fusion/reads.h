#pragma once

#include <vector>

#include "ir/support/containers/shared_list.h"
#include "passes/fusion/affine.h"

namespace lathe {

/// An index that many reads share: most are the reader's own.
using SharedIndex = SharedList<AffineComponent>;

/// A value that a node reads from memory or from its own region, after views and inlined nodes have been looked
/// through.
struct Read {
  ir::ValueId value;   ///< no view, not inlined
  SharedIndex index;   ///< in terms of the reader's index space; meaningless when not affine
  bool affine = true;  ///< false: through a reshape or a data-dependent index, so it must be in memory
};

/// One operand as a node reads it: over which index space, at which index.
struct OperandRead {
  ir::ValueId operand;
  SharedIndex index;
  bool affine = true;
};

/// How the node reads its operands, in terms of its index space: its own result's dims, or for a reduction its
/// operand's. Not for contractions, whose operands always lie in memory or are inlined whole.
std::vector<OperandRead> operand_reads(const ir::Graph& graph, const ir::Node& node);
/// A gather from iota: it gives the indices themselves, and an error where one is out of range. No table is read.
bool is_index_check(const ir::Graph& graph, const ir::Node& node);

/// Whether a node is an iota of one dim: the values of its elements are their positions, in every view of it.
bool is_flat_iota(const ir::Node& node);
/// Whether a view's operand must be materialized: the view changes the shape, and the values of its elements are not
/// their positions.
bool reshapes_memory(const ir::Graph& graph, const ir::Node& view);

/// The index space of a node as operand_reads means it.
const Shape& index_space(const ir::Graph& graph, const ir::Node& node);

/// All reads of a node, through views and through the nodes that `inlined` marks.
std::vector<Read> reads_of(const ir::Graph& graph, ir::ValueId id, const std::vector<bool>& inlined);

}  // namespace lathe
