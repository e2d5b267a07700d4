#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor/users.h"
#include "passes/chunks/row_axis.h"

namespace lathe {

/// Readers of each node, and which nodes are outputs or new values of states.
struct Readers {
  explicit Readers(const ir::Graph& graph);
  std::span<const ir::ValueId> of(ir::ValueId id) const { return users[id]; }
  bool is_result(ir::ValueId id) const { return results[static_cast<std::size_t>(id.index)]; }
  ir::Users users;
  std::vector<bool> results;
};

/// A product whose result has rows, from one operand, and columns, from the other, its table; and what is made of it
/// until the columns are gone. Values with rows and columns have all their readers among the members; others end the
/// region, with the product back to the row operand and sums over the rows, unless a member needs them.
struct RowRegion {
  struct Member {
    RowsThrough rows;                    ///< where the result has none, it is a sum (minimum, maximum) over rows
    std::optional<RowsThrough> columns;  ///< of members that read columns
    bool has_columns() const { return columns && columns->result; }
    bool is_large() const { return rows.result && has_columns(); }
  };
  ir::ValueId product;
  std::map<ir::ValueId, Member> members;

  /// Where it is none: the condition that fails first, at which node.
  std::string reason;
  ir::ValueId at;
  bool holds() const { return reason.empty(); }
  /// Whether anything but members reads a member.
  bool is_result(ir::ValueId member, const Readers& readers) const;
};

/// The region of a contraction with rows along dim `rows` of its result and columns along dim `columns`, labels of
/// different operands. All that reads rows by columns computes row by row: point-wise, by folds, joins and look-ups
/// along other dims, and by products whose result has the rows and no columns, of the product's own table (so no
/// attention, whose weights meet other values), or the columns and no rows.
RowRegion row_region(const ir::Graph& graph, const Readers& readers, ir::ValueId product, int rows, int columns);

}  // namespace lathe
