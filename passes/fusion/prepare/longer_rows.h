#pragma once

#include <map>
#include <optional>
#include <vector>

#include "passes/transforms/rebuild.h"

namespace lathe {

/// Computes element-wise values with rows that end in a few elements more, out of values that have these already:
/// of the gradient of logits, whose product has padded columns, no padded copy is made then. What the elements more
/// are is left open.
class LongerRows {
 public:
  explicit LongerRows(const ir::Graph& graph) : graph_(graph), has_longer_(graph.nodes.size(), false) {}

  /// Says that a value will have longer rows.
  void add(ir::ValueId id) { has_longer_[at(id)] = true; }
  /// Whether a value is element-wise and made of at least one that has longer rows; of what else it reads along a row
  /// there is nothing that has to be copied, but arguments of one row.
  bool reaches(ir::ValueId id) const;

  /// The longer value itself.
  void set(ir::ValueId id, const ir::Value& longer) { built_.insert_or_assign(id.index, longer); }
  /// The longer value of one that is reached, with rows of `size`; at the end of `to`.
  ir::Value build(const ir::Rebuilder& to, ir::ValueId id, std::int64_t size);

 private:
  enum class Kind { same, longer, element_wise, iota, expand, argument, other };
  static std::size_t at(ir::ValueId id) { return static_cast<std::size_t>(id.index); }
  Kind kind(ir::ValueId id) const;

  const ir::Graph& graph_;
  std::vector<bool> has_longer_;
  std::map<int, ir::Value> built_;  ///< by old value
};

}  // namespace lathe
