#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor/analysis/users.h"
#include "ir/tensor/node_map.h"
#include "passes/chunks/row_axis.h"

namespace lathe {

/// The readers of each node, and which nodes are outputs or new values of states.
struct Readers {
  explicit Readers(const ir::Graph& graph);
  std::span<const ir::ValueId> of(ir::ValueId id) const { return users[id]; }
  bool is_result(ir::ValueId id) const { return results[id]; }
  ir::Users users;
  ir::NodeMap<bool> results;
};

/// A product whose result has rows, from one operand, and columns, from the other one (its table), and the nodes that
/// depend on it until the columns are gone. All readers of values with rows and columns are members. Other values end
/// the region, such as the product back to the row operand and sums over the rows, unless a member needs them.
struct RowRegion {
  struct Member {
    RowsThrough rows;                    ///< if the result has none, it is a sum (minimum, maximum) over rows
    std::optional<RowsThrough> columns;  ///< of members that read columns
    bool has_columns() const { return columns && columns->result; }
    bool is_large() const { return rows.result && has_columns(); }
  };
  ir::ValueId product;
  std::map<ir::ValueId, Member> members;

  /// If there is no region: the first condition that fails, and its node.
  std::string reason;
  ir::ValueId at;
  bool holds() const { return reason.empty(); }
  /// Whether a node other than members reads a member.
  bool is_result(ir::ValueId member, const Readers& readers) const;
};

/// Returns the region of a contraction with rows along dim `rows` of its result and columns along dim `columns`,
/// labels of different operands. All readers of values with rows and columns must compute row by row. They may be
/// point-wise nodes, reductions, concatenations and look-ups along other dims, and products. The result of such a
/// product has the columns and no rows, or the rows and no columns; in the latter case it must use the first
/// product's own table. That excludes attention, whose weights are multiplied by other values.
RowRegion row_region(const ir::Graph& graph, const Readers& readers, ir::ValueId product, int rows, int columns);

}  // namespace lathe
