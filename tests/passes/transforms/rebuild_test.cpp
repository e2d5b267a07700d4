#include "passes/transforms/rebuild.h"

#include <catch2/catch.hpp>

#include "ir/ops/primitives/primitives.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("rebuild: copies a graph into another", "[rebuild]") {
  const ir::Graph inner = parse(R"(graph @inner(input %a: f64[n], input %b: f64[n]) {
  %1 = mul %a, %b
  output "o" %1
})");
  GraphBuilder b("outer");
  const Value x = b.argument(ops::input, "x", f64, {Dim("n")});
  Rebuilder to(b, inner);
  for (const ValueId argument : inner.arguments()) to.set(argument, x);
  to.copy_rest();
  b.output("square", to[inner.outputs[0].value]);
  CHECK(text(b.finish()) ==
        "graph @outer(input %x: f64[n]) {\n  %1 = mul %x, %x : f64[n]\n  output \"square\" %1\n}\n");
}

TEST_CASE("rebuild: names, locations, checks and updates are kept", "[rebuild]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], input %y: f64[m], state %s: f64[n]) {
  %sum = add %x, %y  loc("model.cpp":3 in "block.0")
  %2 = add %s, %sum  loc(gradient "model.cpp":4)
  output "o" %sum
  update %s <- %2
})");
  REQUIRE(graph.checks.size() == 1);
  const ir::Graph copy =
      rebuild(graph, [](GraphBuilder&, const Node&, std::span<const Value>) { return std::nullopt; });
  CHECK(text(copy) == text(graph));
  CHECK(copy.checks == graph.checks);
  CHECK(copy[copy.outputs[0].value].loc == graph[graph.outputs[0].value].loc);
}
