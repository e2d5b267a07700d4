#include "passes/transforms/expand.h"

#include <catch2/catch.hpp>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("expand: replaces a composite by its expansion, at its own line", "[expand]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n, 4]) {
  %w = softmax %x {dim=1}  loc("model.cpp":5 in "head")
  output "o" %w
})");
  const ir::Graph after = expand(graph);
  CHECK(text(after) == R"(graph @g(input %x: f64[n, 4]) {
  %1 = max %x {dims=[1], keepdim=true} : f64[n, 1]
  %2 = sub %x, %1 : f64[n, 4]
  %3 = exp %2 : f64[n, 4]
  %4 = sum %3 {dims=[1], keepdim=true} : f64[n, 1]
  %5 = div %3, %4 : f64[n, 4]  name("w")
  output "o" %5
}
)");
  for (const Node& node : after.nodes)
    if (!node.op->as<Argument>()) CHECK(node.loc.to_string() == "model.cpp:5");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 3}}));
}

TEST_CASE("expand: ops in the keep list are kept, inside other composites too", "[expand]") {
  const ir::Graph graph = parse(R"(graph @g(input %q: f64[s, 4], input %k: f64[t, 4]) {
  %1 = attention %q, %k, %k {scale=0.5}
  %2 = gelu %1
  output "o" %2
})");
  const Op* const keep[] = {&ops::softmax};
  const ir::Graph after = expand(graph, keep);
  int softmaxes = 0, others = 0;
  for (const Node& node : after.nodes) {
    softmaxes += node.op == &ops::softmax;
    others += node.op->as<Composite>() && node.op != &ops::softmax;
  }
  CHECK(softmaxes == 1);
  CHECK(others == 0);
  check_same_meaning(graph, after, random_arguments(graph, {{"s", 3}, {"t", 2}}));
}
