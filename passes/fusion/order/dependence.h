#pragma once

#include <span>
#include <vector>

#include "passes/fusion/path_tree.h"

namespace lathe {

/// Tells of the values of a graph which are made of which, in a time that does not grow with the graph where one is
/// on the longest path to the other, or little lies between them.
class Dependence {
 public:
  /// The graph outlives this.
  explicit Dependence(const ir::Graph& graph);

  /// Whether `value` is `source` or is made of it.
  bool needs(ir::ValueId value, ir::ValueId source) const { return needs_any(value, {&source, 1}); }
  /// Whether `value` is one of `sources` or is made of one.
  bool needs_any(ir::ValueId value, std::span<const ir::ValueId> sources) const;

 private:
  const ir::Graph& graph_;
  PathTree paths_;
  mutable std::vector<std::int32_t> seen_;  // by value: the last search that has found it
  mutable std::int32_t search_ = 0;
};

}  // namespace lathe
