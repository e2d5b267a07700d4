#include "passes/fusion/prepare/cast_before_views.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("cast_before_views: casts a value before its slices if all its users do so after them") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 6], input %b: f32[6], input %y: bf16[3, n]) {
  %1 = add %x, %b
  %2 = slice %1 {dim=1, start=0, stop=3}
  %3 = slice %1 {dim=1, start=3, stop=6}
  %4 = transpose %3 {dim0=0, dim1=1}
  %5 = cast %2 {dtype=bf16}
  %6 = cast %4 {dtype=bf16}
  %7 = contract %5, %6 {spec="ab,bc->ac"}
  %8 = mul %6, %y
  output "o" %7
  output "p" %8
})");
  const ir::Graph after = cast_before_views(graph);
  CHECK(text(after) == R"(graph @g(input %x: f32[n, 6], input %b: f32[6], input %y: bf16[3, n]) {
  %1 = add %x, %b : f32[n, 6]
  %2 = cast %1 {dtype=bf16} : bf16[n, 6]
  %3 = slice %2 {dim=1, start=0, stop=3} : bf16[n, 3] strided
  %4 = slice %2 {dim=1, start=3, stop=6} : bf16[n, 3] strided
  %5 = transpose %4 {dim0=0, dim1=1} : bf16[3, n] strided
  %6 = contract %3, %5 {spec="ab,bc->ac"} : bf16[n, n]
  %7 = mul %5, %y : bf16[3, n]
  output "o" %6
  output "p" %7
}
)");
  const Tensors arguments = random_arguments(graph, {{"n", 5}});
  const Tensors expected = interpret(graph, arguments), found = interpret(after, arguments);
  for (const auto& [name, value] : expected) CHECK(lathe::test::error_of(found.at(name), value) == 0);
  CHECK(text(cast_before_views(after)) == text(after));
}

TEST_CASE("cast_before_views: not if the value or a view of it has another user, nor for arguments and outputs") {
  for (const char* more :
       {"%6 = exp %1\n  output \"e\" %6", "%6 = exp %2\n  output \"e\" %6", "output \"e\" %1", "output \"e\" %2",
        "%6 = cast %3 {dtype=f16}\n  output \"e\" %6", "%6 = cast %3 {dtype=f64}\n  output \"e\" %6"}) {
    const ir::Graph graph = parse(std::string(R"(graph @g(input %x: f32[n, 6]) {
  %1 = exp %x
  %2 = slice %1 {dim=1, start=0, stop=3}
  %3 = slice %1 {dim=1, start=3, stop=6}
  %4 = cast %2 {dtype=bf16}
  %5 = cast %3 {dtype=bf16}
  output "a" %4
  output "b" %5
  )") + more + "\n}");
    CHECK(text(cast_before_views(graph)) == text(graph));
  }
  for (const char* unchanged : {R"(graph @g(input %x: f32[n, 6]) {
  %1 = slice %x {dim=1, start=0, stop=3} : f32[n, 3] strided
  %2 = cast %1 {dtype=bf16} : bf16[n, 3]
  output "a" %2
}
)",
                                R"(graph @g(input %x: f32[n, 6]) {
  %1 = exp %x : f32[n, 6]
  %2 = cast %1 {dtype=bf16} : bf16[n, 6]
  output "a" %2
}
)"})
    CHECK(text(cast_before_views(parse(unchanged))) == unchanged);
}
