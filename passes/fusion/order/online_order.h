#pragma once

#include <algorithm>
#include <vector>

#include "ir/support/error.h"

namespace lathe {

/// An incremental topological order of nodes numbered from 0 (Pearce and Kelly 2006). Each node comes after those
/// that it depends on, while dependences are added one at a time; only the nodes between the two are sorted again.
/// The order bounds searches for paths: a node depends on no later one.
///
/// `Edges` has predecessors(i, f) and successors(i, f), which call f(j) for the nodes that i depends on and that
/// depend on i, and predecessor_count(i) and successor_count(i), which return their approximate number.
template <class Edges>
class OnlineOrder {
 public:
  explicit OnlineOrder(const Edges& edges) : edges_(edges) {}

  /// Adds the next node, after all others.
  void append() {
    position_.push_back(static_cast<int>(position_.size()));
    seen_.push_back(0);
  }
  /// Adds the first nodes, in a topological order.
  void append(const std::vector<int>& sorted) {
    LATHE_ASSERT(position_.empty());
    position_.resize(sorted.size());
    seen_.resize(sorted.size(), 0);
    for (std::size_t k = 0; k < sorted.size(); ++k) position_[at(sorted[k])] = static_cast<int>(k);
  }
  std::size_t size() const { return position_.size(); }
  int position(int i) const { return position_[at(i)]; }

  /// Moves `then` behind `first`, which it depends on from now on; both must exist. Throws InternalError for a cycle.
  void add(int first, int then) {
    if (first == then || position(first) < position(then)) return;
    const int low = position(then), high = position(first);
    std::vector<int> after = reach(then, [&](int i, const auto& f) { edges_.successors(i, f); }, low, high);
    LATHE_ASSERT(std::find(after.begin(), after.end(), first) == after.end());
    std::vector<int> before = reach(first, [&](int i, const auto& f) { edges_.predecessors(i, f); }, low, high);
    const auto earlier = [&](int a, int b) { return position(a) < position(b); };
    std::sort(after.begin(), after.end(), earlier);
    std::sort(before.begin(), before.end(), earlier);
    std::vector<int> positions;
    for (const auto* moved : {&before, &after})
      for (const int i : *moved) positions.push_back(position(i));
    std::sort(positions.begin(), positions.end());
    before.insert(before.end(), after.begin(), after.end());
    for (std::size_t k = 0; k < positions.size(); ++k) position_[at(before[k])] = positions[k];
  }

  /// Whether one of `from` is `target` or depends on it, directly or indirectly. Searches from both ends in turn. For
  /// a node that is `target` or depends on it, `known(i)` may return early that one of `from` depends on the node.
  template <class Known>
  bool depends(const std::vector<int>& from, int target, Known&& known) const {
    std::vector<int> sources, readers = {target};
    const int low = position(target);
    int high = low;
    const int from_source = ++search_, from_target = ++search_;
    for (const int i : from) {
      if (i == target) return true;
      if (position(i) < low || seen_[at(i)] == from_source) continue;
      seen_[at(i)] = from_source;
      sources.push_back(i);
      high = std::max(high, position(i));
    }
    if (sources.empty()) return false;
    bool met = false;
    const auto look = [&](std::vector<int>& found, int mark, int other) {
      return [&, mark, other](int i) {
        if (position(i) < low || position(i) > high || seen_[at(i)] == mark) return;
        met = met || seen_[at(i)] == other;
        seen_[at(i)] = mark;
        found.push_back(i);
      };
    };
    seen_[at(target)] = from_target;
    // Continue at the end that has cost fewer edges, so that nodes with many edges are rarely expanded.
    std::size_t s = 0, r = 0, asked = 0, source_edges = 0, reader_edges = 0;
    while (!met && s < sources.size() && r < readers.size()) {
      if (asked == r) {
        ++asked;
        if (known(readers[r])) return true;
      }
      const std::size_t source_next = source_edges + edges_.predecessor_count(sources[s]),
                        reader_next = reader_edges + edges_.successor_count(readers[r]);
      if (source_next <= reader_next) {
        edges_.predecessors(sources[s++], look(sources, from_source, from_target));
        source_edges = source_next;
      } else {
        edges_.successors(readers[r++], look(readers, from_target, from_source));
        reader_edges = reader_next;
      }
    }
    return met;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Returns `start` and the nodes that `neighbours` reach from it, between two positions.
  template <class Neighbours>
  std::vector<int> reach(int start, Neighbours&& neighbours, int low, int high) const {
    std::vector<int> found = {start};
    const int search = ++search_;
    seen_[at(start)] = search;
    for (std::size_t k = 0; k < found.size(); ++k)
      neighbours(found[k], [&](int i) {
        if (position(i) < low || position(i) > high || seen_[at(i)] == search) return;
        seen_[at(i)] = search;
        found.push_back(i);
      });
    return found;
  }

  const Edges& edges_;
  std::vector<int> position_;
  mutable std::vector<int> seen_;  // the last search that visited a node
  mutable int search_ = 0;
};

}  // namespace lathe
