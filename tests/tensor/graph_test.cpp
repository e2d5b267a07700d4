#include <catch2/catch.hpp>

#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"

/// Properties of the parts of a graph.
using namespace lathe;
using namespace lathe::ir;

TEST_CASE("the size of a label is the size of its dims in either operand", "[graph]") {
  const Graph graph = parse_graph(R"(graph @g(input %a: f32[N, h=2, 3, 4], input %b: f32[N, 5, d=4, h=2]) {
  %1 = contract %a, %b {spec="nhmk,njkh->nhmj"}
  output "y" %1
})");
  const Node& product = graph[graph.outputs[0].value];
  const ContractionRoles roles = product.op->as<Contraction>()->roles(product);
  const auto size = [&](const std::string& labels) { return roles.size_of(labels, graph, product); };
  CHECK(size("") == Dim(1));
  CHECK(size(roles.batch()) == Dim("N") * 2);
  CHECK(size(roles.lhs_free()) == Dim(3));
  CHECK(size(roles.rhs_free()) == Dim(5));
  CHECK(size(roles.contracted()) == Dim(4));
  CHECK(size(roles.batch()).to_string() == "2*N");
}

TEST_CASE("graph results are the output values, then the new state values", "[graph]") {
  const Graph graph = parse_graph(R"(graph @g(input %x: f32[n], state %s: f32[n], state %t: f32[n]) {
  %1 = exp %x
  %2 = add %s, %1
  output "y" %2
  output "x" %x
  update %t <- %1
  update %s <- %2
})");
  const ValueId exp{3}, sum{4};
  CHECK(graph.results() == std::vector<ValueId>{sum, ValueId{0}, exp, sum});
}
