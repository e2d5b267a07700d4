#include "passes/transforms/dce.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("dce: removes dead nodes, keeps operands of updates", "[dce]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], input %unused: f64[n], state %s: f64[n]) {
  %1 = exp %x
  %2 = sin %x
  %3 = cos %1
  %4 = add %s, %2
  output "o" %1
  update %s <- %4
})");
  const ir::Graph after = dce(graph);
  CHECK(changes(graph, after) == "- %3 = cos %1 : f64[n]\n");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 3}}), 0);
}
