#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// For each value of a graph the nodes that read it, in the order of the graph; one that reads it twice stands there
/// twice. All lists lie in one array.
class Users {
 public:
  explicit Users(const Graph& graph);

  std::span<const ValueId> operator[](ValueId id) const {
    const auto i = static_cast<std::size_t>(id.index);
    return std::span(users_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::size_t> first_;  // by node, and behind the last
  std::vector<ValueId> users_;
};

}  // namespace lathe::ir
