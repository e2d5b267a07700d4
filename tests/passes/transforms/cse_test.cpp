#include "passes/transforms/cse.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("cse: commutative operands in any order, ignoring dim names", "[cse]") {
  const ir::Graph graph = parse(R"(graph @g(input %a: f64[n, 6], input %b: f64[n, 6]) {
  %1 = add %a, %b
  %2 = add %b, %a
  %3 = mul %1, %2
  %4 = view %3 {shape=[n, 2, 3]}
  %5 = view %3 {shape=[n, h=2, d=3]}
  %6 = sub %4, %5
  output "o" %6
})");
  const ir::Graph after = cse(graph);
  CHECK(changes(graph, after) == R"(- %2 = add %b, %a : f64[n, 6]; %2 mul reads %1 instead
- %5 = view %3 {shape=[n, h=2, d=3]} : f64[n, h=2, d=3]; %4 sub reads %3 instead
)");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 3}}), 0);
}

TEST_CASE("cse: nodes that only look equal are kept", "[cse]") {
  const ir::Graph graph = parse(R"(graph @g(input %a: f64[n, n], input %b: f64[n, n], state %s: i64[2]) {
  %1 = sub %a, %b
  %2 = sub %b, %a
  %3 = lt %a, %b
  %4 = lt %b, %a
  %5 = sum %a {dims=[0]}
  %6 = sum %a {dims=[1]}
  %7 = random_uniform %s {shape=[n], dtype=f64, stream=0}
  %8 = random_uniform %s {shape=[n], dtype=f64, stream=1}
  output "1" %1
  output "2" %2
  output "3" %3
  output "4" %4
  output "5" %5
  output "6" %6
  output "7" %7
  output "8" %8
})");
  CHECK(text(cse(graph)) == text(graph));
}
