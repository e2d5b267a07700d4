#include "passes/remat/loop_pairs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe {

using namespace ir;

namespace {

/// The loops of one graph, without those in bodies.
class PairFinder {
 public:
  PairFinder(const Graph& graph, const std::optional<Body>& body, Dim runs)
      : graph_(graph), users_(graph), body_(body), runs_(std::move(runs)), first_(graph) {
    for (const ValueId id : graph.results()) held_.insert(id);
    for (const ValueId id : all_values(graph)) {
      if (!is_loop(graph[id])) continue;
      const auto same = [&](ValueId other) { return is_same_loop(graph[other], graph[id]); };
      const auto known = std::ranges::find_if(loops_, same);
      first_[id] = known == loops_.end() ? loops_.emplace_back(id) : *known;
    }
  }

  std::vector<LoopPair> run() {
    std::vector<LoopPair> pairs;
    std::set<ValueId> taken;
    for (const ValueId loop : loops_) {
      std::optional<LoopPair> pair = pair_of(loop);
      if (!pair) continue;
      if (pair->left_alone.empty() && (taken.contains(pair->saver) || taken.contains(pair->reader))) {
        pair->left_alone = "one of the two loops is recomputed, or recomputes, already";
        pair->again.clear();
      }
      if (pair->left_alone.empty()) taken.insert({pair->saver, pair->reader});
      pairs.push_back(std::move(*pair));
    }
    return pairs;
  }

 private:
  bool is_sequence(const Node& loop, int operand) const {
    return operand >= carry_count(loop) && operand < carry_count(loop) + sequence_count(loop);
  }

  /// Returns the loops that read a value as a sequence.
  std::set<ValueId> reading_loops(ValueId value) const {
    std::set<ValueId> found;
    for (const ValueId user : users_[value]) {
      const Node& node = graph_[user];
      if (!is_loop(node)) continue;
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
        if (node.operands[static_cast<std::size_t>(i)] == value && is_sequence(node, i)) found.insert(first_[user]);
    }
    return found;
  }

  /// Returns a reader of the value other than `loop`, which reads it as a sequence; an invalid id if there is none.
  ValueId other_reader(ValueId value, ValueId loop) const {
    for (const ValueId user : users_[value]) {
      const Node& node = graph_[user];
      if (!is_loop(node) || first_[user] != loop) return user;
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
        if (node.operands[static_cast<std::size_t>(i)] == value && !is_sequence(node, i)) return user;
    }
    return {};
  }

  std::optional<LoopPair> pair_of(ValueId loop) const {
    const std::vector<ValueId> results = nodes_of_loop(graph_, loop);
    std::map<ValueId, std::vector<int>> again;  // by reader
    std::string reason;
    for (auto r = static_cast<std::size_t>(carry_count(graph_[loop])); r < results.size(); ++r) {
      if (!results[r].valid()) continue;
      for (const ValueId reader : reading_loops(results[r])) {
        std::vector<int>& alone = again[reader];
        const ValueId other = other_reader(results[r], reader);
        if (!other.valid() && !held_.contains(results[r])) {
          alone.push_back(static_cast<int>(r));
        } else if (reason.empty()) {
          reason = other.valid() ? fmt::format("its saved values are also read by {} at {}",
                                               graph_[other].op->name.value, graph_[other].loc.place())
                                 : "its saved values are also results of the graph";
        }
      }
    }
    if (again.empty()) return std::nullopt;
    const auto best = std::ranges::max_element(again, {}, [](const auto& each) { return each.second.size(); });
    LoopPair pair{.body = body_,
                  .runs = runs_,
                  .saver = loop,
                  .reader = best->first,
                  .again = best->second,
                  .left_alone = best->second.empty() ? reason : ""};
    if (loop_trips(graph_[loop]).is(1)) pair.left_alone = "it has one iteration";
    if (!pair.left_alone.empty()) pair.again.clear();
    return pair;
  }

  const Graph& graph_;
  Users users_;
  const std::optional<Body>& body_;
  Dim runs_;
  NodeMap<ValueId> first_;      // by node of a loop: the loop's first node
  std::vector<ValueId> loops_;  // their first nodes
  std::set<ValueId> held_;
};

void add_pairs(const Graph& graph, const std::optional<Body>& body, const Dim& runs, std::vector<LoopPair>& pairs,
               std::vector<Body>& seen) {
  std::vector<LoopPair> found = PairFinder(graph, body, runs).run();
  pairs.insert(pairs.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  for (const Node& node : graph.nodes) {
    if (!is_loop(node)) continue;
    const Body& inner = loop_body(node);
    if (std::ranges::any_of(seen, [&](const Body& each) { return each.is_same(inner); })) continue;
    seen.push_back(inner);
    add_pairs(inner.graph(), inner, runs.unnamed() * loop_trips(node).unnamed(), pairs, seen);
  }
}

}  // namespace

std::vector<ValueId> nodes_of_loop(const Graph& graph, ValueId first) {
  std::vector<ValueId> found(static_cast<std::size_t>(result_count(graph[first])));
  for (ValueId id = first; id.index < graph.size(); ++id.index)
    if (is_loop(graph[id]) && is_same_loop(graph[first], graph[id]))
      found[static_cast<std::size_t>(loop_result(graph[id]))] = id;
  return found;
}

std::vector<LoopPair> find_loop_pairs(const Graph& graph) {
  std::vector<LoopPair> pairs;
  std::vector<Body> seen;
  add_pairs(graph, std::nullopt, Dim(1), pairs, seen);
  return pairs;
}

}  // namespace lathe
