#pragma once

#include <cstdint>
#include <vector>

namespace lathe::shard {

/// The cheapest set of edges that separates the source from the sink of a directed graph (Dinic 1970).
class MinCut {
 public:
  static constexpr std::int64_t unbounded = std::int64_t{1} << 60;

  explicit MinCut(int vertices);
  int source() const { return static_cast<int>(first_.size()) - 2; }
  int sink() const { return static_cast<int>(first_.size()) - 1; }
  /// Edges of unbounded cost are never cut; the sum of the other costs must be less.
  void add_edge(int from, int to, std::int64_t cost);
  /// Returns, by vertex, whether it is on the source's side. Of equally cheap cuts, returns the one nearest to the
  /// source.
  std::vector<bool> solve();

 private:
  struct Edge {
    int to;
    int next;
    std::int64_t room;
  };
  bool find_levels();
  std::int64_t push();

  std::vector<int> first_;   ///< by vertex, into edges_
  std::vector<Edge> edges_;  ///< edge i and i ^ 1 are opposite
  std::vector<int> level_, next_;
};

}  // namespace lathe::shard
