#include "passes/transforms/sizes/known_sizes.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

const ir::Graph merged = parse(R"(graph @g(input %x: f64[B, T + 1, d=4], parameter %w: f64[V, 4], state %s: i64[2]) {
  %1 = slice %x {dim=1, start=0, stop=T}
  %2 = contiguous %1
  %3 = view %2 {shape=[N=B*T, 4]}
  %4 = contract %3, %w {spec="nd,vd->nv"}
  %5 = random_uniform %s {shape=[B*T, V], dtype=f64, stream=3}
  %6 = add %4, %5
  output "o" %6
  update %s <- %s
})");

}  // namespace

TEST_CASE("with_sizes: dims become numbers everywhere and keep their names", "[sizes]") {
  CHECK(text(with_sizes(merged, {{"B", 2}, {"T", 3}})) ==
        text(parse(R"(graph @g(input %x: f64[B=2, 4, d=4], parameter %w: f64[V, 4], state %s: i64[2]) {
  %1 = slice %x {dim=1, start=0, stop=T=3}
  %2 = contiguous %1
  %3 = view %2 {shape=[N=6, 4]}
  %4 = contract %3, %w {spec="nd,vd->nv"}
  %5 = random_uniform %s {shape=[6, V], dtype=f64, stream=3}
  %6 = add %4, %5
  output "o" %6
  update %s <- %s
})")));
  CHECK(text(with_sizes(merged, {})) == text(merged));
}

TEST_CASE("with_sizes: results at these sizes are unchanged", "[sizes]") {
  const DimBindings sizes = {{"B", 2}, {"T", 3}, {"V", 5}};
  const Tensors arguments = random_arguments(merged, sizes);
  check_same_meaning(merged, with_sizes(merged, sizes), arguments, 0);
  check_same_meaning(merged, with_sizes(merged, {{"T", 3}}), arguments, 0);
}

TEST_CASE("with_sizes: checks of known sizes pass, or report where they fail", "[sizes]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n, k], input %y: f64[m, 3]) {
  %1 = matmul %x, %y loc("model.cpp":7)
  output "o" %1
  check n <= 16 : batch [max_batch] "at most 16 rows at a time"
})");
  REQUIRE(graph.checks.size() == 2);
  CHECK(with_sizes(graph, {{"n", 4}}).checks.size() == 1);
  CHECK(with_sizes(graph, {{"n", 4}, {"k", 5}, {"m", 5}}).checks.empty());
  CHECK_THAT(error_text([&] { with_sizes(graph, {{"n", 17}}); }), Contains("[max_batch]"));
  CHECK_THAT(error_text([&] { with_sizes(graph, {{"k", 5}, {"m", 6}}); }),
             Contains("model.cpp:7") && Contains("[matmul_inner]"));
  CHECK_THAT(error_text([&] { with_sizes(graph, {{"n", -1}}); }), Contains("[dim_negative]"));
}
