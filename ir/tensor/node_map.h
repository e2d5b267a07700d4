#pragma once

#include <cstddef>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// A `T` for each value of a graph.
template <class T>
class NodeMap {
 public:
  NodeMap() = default;
  explicit NodeMap(const Graph& graph) : values_(graph.nodes.size()) {}
  NodeMap(const Graph& graph, const T& initial) : values_(graph.nodes.size(), initial) {}

  decltype(auto) operator[](ValueId id) { return values_[id.index]; }
  decltype(auto) operator[](ValueId id) const { return values_[id.index]; }
  bool contains(ValueId id) const { return id.valid() && static_cast<std::size_t>(id.index) < values_.size(); }
  /// Whether there are no entries, as in a map that was constructed without a graph.
  bool empty() const { return values_.empty(); }

  /// Adds entries for nodes that the graph has gained.
  void grow(const Graph& graph) { values_.resize(graph.nodes.size()); }

  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool operator==(const NodeMap&) const = default;

 private:
  std::vector<T> values_;
};

}  // namespace lathe::ir
