#include "passes/transforms/recompute.h"

#include <catch2/catch.hpp>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/op/op.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("recompute: users see copies, which read each other", "[recompute]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], state %s: f64[n]) {
  %2 = exp %x
  %3 = transpose %2 {dim0=0, dim1=0}
  %4 = mul %3, %x
  %5 = sum %4 {dims=[]}
  %6 = mul %2, %5
  %7 = add %4, %6
  output "o" %7
  update %s <- %7
})");
  const auto id = [](int i) { return ValueId{i}; };
  const std::vector<Recomputation> wanted = {{{id(2), id(3), id(4)}, {id(7)}}, {{id(2)}, {id(6)}}};
  const ir::Graph after = recompute(graph, wanted);
  CHECK(text(after) == R"(graph @g(input %x: f64[n], state %s: f64[n]) {
  %1 = exp %x : f64[n]
  %2 = transpose %1 {dim0=0, dim1=0} : f64[n]
  %3 = mul %2, %x : f64[n]
  %4 = sum %3 {dims=[]} : f64[n]
  %5 = exp %x : f64[n]
  %6 = mul %5, %4 : f64[n]
  %7 = exp %x : f64[n]
  %8 = transpose %7 {dim0=0, dim1=0} : f64[n]
  %9 = mul %8, %x : f64[n]
  %10 = add %9, %6 : f64[n]
  output "o" %10
  update %s <- %10
}
)");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 3}}), 0);
}

TEST_CASE("recompute: a value that no reader needs has no copy", "[recompute]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n]) {
  %1 = exp %x
  %2 = tanh %x
  %3 = sum %2 {dims=[]}
  %4 = mul %1, %3
  output "o" %4
})");
  const std::vector<Recomputation> wanted = {{{ValueId{1}, ValueId{2}}, {ValueId{4}}}};
  std::vector<std::vector<ValueId>> copies;
  const ir::Graph after = recompute(graph, wanted, &copies);
  REQUIRE(copies.size() == 1);
  REQUIRE(copies[0].size() == 2);
  CHECK(after[copies[0][0]].op == &ops::exp);
  CHECK_FALSE(copies[0][1].valid());
}

TEST_CASE("recompute: an empty request changes nothing", "[recompute]") {
  for (const Specimen& specimen : specimens()) {
    const ir::Graph graph = parse(specimen.text);
    CHECK(text(recompute(graph, {})) == text(graph));
  }
}

TEST_CASE("recompute: any values for any users, semantics are preserved", "[recompute]") {
  for (const Specimen& specimen : specimens()) {
    const ir::Graph graph = parse(specimen.text);
    std::vector<Recomputation> wanted;
    const Users users(graph);
    for (const ValueId id : all_values(graph)) {
      const auto& readers = users[id];
      if (!graph[id].op->as<Argument>() && readers.size() > 1) wanted.push_back({{id}, {readers.back()}});
    }
    INFO(specimen.name);
    check_same_meaning(graph, recompute(graph, wanted), random_arguments(graph, specimen.dims), 0);
  }
}
