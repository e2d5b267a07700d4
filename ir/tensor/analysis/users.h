#pragma once

#include <cstddef>
#include <span>

#include "ir/support/containers/jagged_list.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

/// For each value of a graph, the nodes that read it, in graph order; a node that reads it twice is listed twice.
class Users {
 public:
  explicit Users(const Graph& graph);

  std::span<const ValueId> operator[](ValueId id) const { return users_[id.index]; }

 private:
  JaggedList<ValueId> users_;  // by node
};

}  // namespace lathe::ir
