#include "ir/tensor/loop_views.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lathe::ir {

const Body& loop_body(const Node& node) { return node.attrs.get<Body>("body"); }
const Dim& loop_trips(const Node& node) { return node.attrs.get<Dim>("trips"); }
bool loop_reverse(const Node& node) { return node.attrs.get<bool>("reverse"); }
int loop_result(const Node& node) { return static_cast<int>(node.attrs.get<std::int64_t>("result")); }
int carry_count(const Node& node) { return static_cast<int>(loop_body(node).graph().updates.size()); }
int sequence_count(const Node& node) { return static_cast<int>(node.attrs.get<std::int64_t>("sequences")); }
int result_count(const Node& node) {
  return carry_count(node) + static_cast<int>(loop_body(node).graph().outputs.size());
}

bool is_same_loop(const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && loop_reverse(a) == loop_reverse(b) &&
         sequence_count(a) == sequence_count(b) && loop_trips(a) == loop_trips(b) && loop_body(a) == loop_body(b);
}

ValueId next_of(const Graph& body, int i) {
  const ValueId carry = body.arguments()[static_cast<std::size_t>(i)];
  for (const Update& update : body.updates)
    if (update.state == carry) return update.value;
  throw InternalError(fmt::format("carry {} of the body @{} has no next value", i, body.name));
}

Graph on_bodies(Graph graph, const std::function<Graph(Graph)>& change) {
  std::vector<std::pair<Body, Body>> changed;
  for (Node& node : graph.nodes) {
    if (!is_loop(node)) continue;
    const Body& body = loop_body(node);
    auto known = std::ranges::find_if(changed, [&](const auto& each) { return each.first.is_same(body); });
    if (known == changed.end()) {
      changed.emplace_back(body, Body(change(on_bodies(Graph(body.graph()), change))));
      known = changed.end() - 1;
    }
    node.attrs.set("body", known->second);
  }
  return graph;
}

}  // namespace lathe::ir
