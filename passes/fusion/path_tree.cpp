#include "passes/fusion/path_tree.h"

namespace lathe {

void PathTree::hang(std::size_t i, ir::ValueId source) {
  if (depth_[at(source)] < depth_[i]) return;
  depth_[i] = depth_[at(source)] + 1;
  parent_[i] = source;
}

void PathTree::number() {
  const std::size_t size = depth_.size();
  first_.assign(size, 0);
  count_.assign(size, 1);
  for (std::size_t i = size; i-- > 0;)
    if (parent_[i].valid()) count_[at(parent_[i])] += count_[i];
  std::vector<std::int32_t> next(size);  // number of the next child
  std::int32_t next_root = 0;
  for (std::size_t i = 0; i < size; ++i) {
    std::int32_t& free = parent_[i].valid() ? next[at(parent_[i])] : next_root;
    first_[i] = free;
    free += count_[i];
    next[i] = first_[i] + 1;
  }
}

}  // namespace lathe
