#pragma once

#include <map>
#include <optional>
#include <vector>

#include "passes/transforms/rebuild.h"

namespace lathe {

/// Computes elementwise values with rows that have a few more elements at the end, from values that already have
/// them. For example, the gradient of logits, whose matmul has padded columns, then needs no padded copy. The
/// additional elements are undefined.
class LongerRows {
 public:
  explicit LongerRows(const ir::Graph& graph) : graph_(graph), has_longer_(graph, false) {}

  /// Declares that a value will have longer rows.
  void add(ir::ValueId id) { has_longer_[id] = true; }
  /// Whether a value is elementwise and depends on at least one value with longer rows. Nothing else that it reads
  /// along a row may require a copy, except arguments of one row.
  bool reaches(ir::ValueId id) const;

  /// Sets the longer version of a value.
  void set(ir::ValueId id, const ir::Value& longer) { built_.insert_or_assign(id.index, longer); }
  /// Returns the longer version, with rows of `size`, of a value that reaches() accepts; appends it to `to`.
  ir::Value build(const ir::Rebuilder& to, ir::ValueId id, std::int64_t size);

 private:
  enum class Kind { same, longer, element_wise, iota, expand, argument, other };
  Kind kind(ir::ValueId id) const;

  const ir::Graph& graph_;
  ir::NodeMap<bool> has_longer_;
  std::map<int, ir::Value> built_;  ///< by old value
};

}  // namespace lathe
