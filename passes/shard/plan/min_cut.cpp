#include "passes/shard/plan/min_cut.h"

#include <algorithm>

namespace lathe::shard {

namespace {
std::size_t at(int i) { return static_cast<std::size_t>(i); }
}  // namespace

MinCut::MinCut(int vertices) : first_(at(vertices) + 2, -1) {}

void MinCut::add_edge(int from, int to, std::int64_t cost) {
  const auto add = [this](int a, int b, std::int64_t room) {
    edges_.push_back({b, first_[at(a)], room});
    first_[at(a)] = static_cast<int>(edges_.size()) - 1;
  };
  add(from, to, cost);
  add(to, from, 0);
}

/// Computes the distances from the source over edges with room; returns whether the sink is reached.
bool MinCut::find_levels() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue{source()};
  level_[at(source())] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (int e = first_[at(queue[i])]; e >= 0; e = edges_[at(e)].next) {
      const Edge& edge = edges_[at(e)];
      if (edge.room == 0 || level_[at(edge.to)] >= 0) continue;
      level_[at(edge.to)] = level_[at(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  return level_[at(sink())] >= 0;
}

/// Pushes flow along one path of increasing levels and returns its amount; 0 if there is no path. Not recursive,
/// because paths are long.
std::int64_t MinCut::push() {
  std::vector<int> path;
  int vertex = source();
  while (vertex != sink()) {
    int& e = next_[at(vertex)];
    while (e >= 0 && (edges_[at(e)].room == 0 || level_[at(edges_[at(e)].to)] != level_[at(vertex)] + 1))
      e = edges_[at(e)].next;
    if (e >= 0) {
      path.push_back(e);
      vertex = edges_[at(e)].to;
      continue;
    }
    if (path.empty()) return 0;
    vertex = edges_[at(path.back() ^ 1)].to;
    path.pop_back();
    next_[at(vertex)] = edges_[at(next_[at(vertex)])].next;
  }
  std::int64_t room = unbounded;
  for (const int e : path) room = std::min(room, edges_[at(e)].room);
  for (const int e : path) {
    if (edges_[at(e)].room < unbounded) edges_[at(e)].room -= room;
    edges_[at(e ^ 1)].room = std::min(unbounded, edges_[at(e ^ 1)].room + room);
  }
  return room;
}

std::vector<bool> MinCut::solve() {
  while (find_levels()) {
    next_ = first_;
    while (push() > 0) {
    }
  }
  std::vector<bool> side(first_.size());
  for (std::size_t v = 0; v < side.size(); ++v) side[v] = level_[v] >= 0;
  return side;
}

}  // namespace lathe::shard
