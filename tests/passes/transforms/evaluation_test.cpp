#include "passes/transforms/evaluation.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("evaluation: dropout becomes its operand, and its random state loses the update", "[evaluation]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n, 3], parameter %w: f64[3], state %rng: i64[2]) {
  %1 = mul %x, %w
  %2 = dropout %1, %rng {p=0.5, stream=0}
  %3 = exp %2
  %4 = constant {dtype=i64, shape=[2], values=[0, 1]}
  %5 = add %rng, %4
  output "y" %3
  update %rng <- %5
})");
  const ir::Graph after = evaluation(graph);
  CHECK(changes(graph, after) == R"(- state %rng: i64[2]
- %2 = dropout %1, %rng {p=0.5, stream=0} : f64[n, 3]; %2 exp reads %1 instead
- %4 = constant {dtype=i64, shape=[2], values=[0.0, 1.0]} : i64[2]
- %5 = add %rng, %4 : i64[2]
- update %rng: %5
)");
}

TEST_CASE("evaluation: a random state with another user is kept", "[evaluation]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], state %rng: i64[2]) {
  %1 = dropout %x, %rng {p=0.5, stream=0}
  %2 = add %rng, %rng
  output "y" %1
  output "z" %2
  update %rng <- %2
})");
  CHECK(text(evaluation(graph)) == R"(graph @g(input %x: f64[n], state %rng: i64[2]) {
  %1 = add %rng, %rng : i64[2]
  output "y" %x
  output "z" %1
  update %rng <- %1
}
)");
}

TEST_CASE("evaluation: a graph without dropout is unchanged", "[evaluation]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], state %rng: i64[2]) {
  %1 = exp %x
  output "y" %1
  update %rng <- %rng
})");
  CHECK(text(evaluation(graph)) == text(graph));
}
