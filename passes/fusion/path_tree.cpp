#include "passes/fusion/path_tree.h"

namespace lathe {

using ir::ValueId;

void PathTree::hang(ValueId id, ValueId source) {
  if (depth_[source] < depth_[id]) return;
  depth_[id] = depth_[source] + 1;
  parent_[id] = source;
}

void PathTree::number(const ir::Graph& graph) {
  for (std::int32_t i = graph.size() - 1; i >= 0; --i)
    if (const ValueId parent = parent_[{i}]; parent.valid()) count_[parent] += count_[{i}];
  ir::NodeMap<std::int32_t> next(graph);  // number of the next child
  std::int32_t next_root = 0;
  for (const ValueId id : ir::all_values(graph)) {
    std::int32_t& free = parent_[id].valid() ? next[parent_[id]] : next_root;
    first_[id] = free;
    free += count_[id];
    next[id] = first_[id] + 1;
  }
}

}  // namespace lathe
