#pragma once

#include <span>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/fusion/path_tree.h"

namespace lathe {

/// Answers which values of a graph depend on which. A query does not take longer in larger graphs if one value is on
/// the longest path to the other, or if there are few values between them.
class Dependence {
 public:
  /// The graph must outlive this object.
  explicit Dependence(const ir::Graph& graph);

  /// Whether `value` is `source` or depends on it.
  bool needs(ir::ValueId value, ir::ValueId source) const { return needs_any(value, {&source, 1}); }
  /// Whether `value` is one of `sources` or depends on one.
  bool needs_any(ir::ValueId value, std::span<const ir::ValueId> sources) const;

 private:
  const ir::Graph& graph_;
  PathTree paths_;
  mutable ir::NodeMap<std::int32_t> seen_;  // the last search that visited it
  mutable std::int32_t search_ = 0;
};

}  // namespace lathe
