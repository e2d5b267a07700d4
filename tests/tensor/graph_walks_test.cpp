#include <catch2/catch.hpp>

#include <set>
#include <vector>

#include "ir/support/post_order.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/text/parser.h"

using namespace lathe;
using ir::NodeMap, ir::ValueId;

namespace {

/// y = (x + z) * x; "unused" depends on y.
ir::Graph diamond() {
  return ir::parse_graph(R"(graph @g(input %x: f32[4], input %z: f32[4]) {
  %1 = add %x, %z
  %2 = mul %1, %x
  %3 = exp %2
  output "y" %2
})");
}

}  // namespace

TEST_CASE("a node map has one entry per value") {
  ir::Graph graph = diamond();
  NodeMap<int> map(graph, 7);
  map[ValueId{2}] = 3;
  CHECK(map[ValueId{2}] == 3);
  CHECK(map[ValueId{4}] == 7);
  CHECK(map.contains(ValueId{4}));
  CHECK_FALSE((map.contains(ValueId{5}) || map.contains(ValueId{})));
  graph.nodes.push_back(graph[ValueId{4}]);
  map.grow(graph);
  CHECK(map[ValueId{5}] == 0);
  NodeMap<bool> flags(graph);
  flags[ValueId{1}] = true;
  CHECK((flags[ValueId{1}] && !flags[ValueId{0}]));
}

TEST_CASE("all_values and reversed_values are in topological order and its reverse") {
  const ir::Graph graph = diamond();
  std::vector<ValueId> forward, backward;
  for (const ValueId id : all_values(graph)) forward.push_back(id);
  for (const ValueId id : reversed_values(graph)) backward.insert(backward.begin(), id);
  CHECK(forward.size() == 5);
  CHECK(forward == backward);
  for (const ValueId id : reversed_values(ir::Graph{})) CHECK(id.valid());  // no iteration
}

TEST_CASE("mark_ancestors marks the operands of marked values") {
  const ir::Graph graph = diamond();
  NodeMap<bool> marked(graph);
  marked[graph.outputs[0].value] = true;
  mark_ancestors(graph, marked);
  CHECK(std::vector<bool>(marked.begin(), marked.end()) == std::vector{true, true, true, true, false});
}

TEST_CASE("post_order visits successors first, like recursion") {
  const std::vector<std::vector<int>> next{{}, {0}, {0, 1}, {2, 1}};
  std::set<int> done;
  std::vector<int> order;
  const auto visit = [&](int root, int last) {
    return post_order(
        root, [&](int node) -> auto& { return next[static_cast<std::size_t>(node)]; },
        [&](int node) { return !done.contains(node); },
        [&](int node) {
          done.insert(node);
          order.push_back(node);
          return node != last;
        });
  };
  CHECK(visit(3, -1));
  CHECK(order == std::vector{0, 1, 2, 3});
  CHECK(visit(3, -1));  // entered already
  CHECK(order.size() == 4);
  done.clear(), order.clear();
  CHECK_FALSE(visit(3, 1));
  CHECK(order == std::vector{0, 1});
}

TEST_CASE("post_order needs no stack for a long chain") {
  constexpr int length = 1'000'000;
  int visited = 0;
  post_order(
      length, [](int node) { return node > 0 ? std::vector{node - 1} : std::vector<int>{}; },
      [](int) { return true; }, [&](int) { return ++visited > 0; });
  CHECK(visited == length + 1);
}
