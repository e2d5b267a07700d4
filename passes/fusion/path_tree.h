#pragma once

#include <cstdint>

#include "ir/tensor/node_map.h"

namespace lathe {

/// A tree of longest paths: the parent of each value is the deepest value that it depends on. For many pairs it shows
/// immediately whether one value depends on the other.
class PathTree {
 public:
  /// For each value of the graph, in order: sources(id, f) calls f(ValueId) for each value that value `id`
  /// depends on, all of them less than it.
  template <class Sources>
  PathTree(const ir::Graph& graph, Sources&& sources)
      : depth_(graph, 0), parent_(graph), first_(graph, 0), count_(graph, 1) {
    for (const ir::ValueId id : ir::all_values(graph)) sources(id, [&](ir::ValueId source) { hang(id, source); });
    number(graph);
  }

  /// Returns the length of the longest path to a value; 0 for a value without sources.
  std::int32_t depth(ir::ValueId id) const { return depth_[id]; }
  /// Whether `source` is on the longest path to `value`, which then depends on it; it may be the value itself. If
  /// false, the value may still depend on it.
  bool on_path(ir::ValueId source, ir::ValueId value) const {
    return first_[source] <= first_[value] && first_[value] < first_[source] + count_[source];
  }

 private:
  void hang(ir::ValueId id, ir::ValueId source);
  void number(const ir::Graph& graph);

  ir::NodeMap<std::int32_t> depth_;
  ir::NodeMap<ir::ValueId> parent_;          // the deepest source; invalid for a root
  ir::NodeMap<std::int32_t> first_, count_;  // the numbers of a value and its descendants: first, first + 1, ...
};

}  // namespace lathe
