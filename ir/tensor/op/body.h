#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lathe::ir {

struct Graph;

/// The body of a loop: a graph that copies share and that does not change. Two bodies are equal if their graphs have
/// equal nodes, arguments and results; locations and the names of the graphs and of values are ignored.
class Body {
 public:
  explicit Body(Graph graph);
  const Graph& graph() const { return *graph_; }
  /// Returns whether both share one graph in memory.
  bool is_same(const Body& other) const { return graph_ == other.graph_; }
  /// Returns whether they also have the same names and the same display names of dims.
  bool looks_like(const Body& other) const;
  bool operator==(const Body& other) const;
  /// Equal bodies have equal hashes.
  std::size_t hash() const { return hash_; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::size_t hash_;
};

}  // namespace lathe::ir
