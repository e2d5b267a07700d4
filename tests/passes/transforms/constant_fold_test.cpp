#include "passes/transforms/constant_fold.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("constant_fold: computes nodes that depend only on constants", "[constant_fold]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 3]) {
  %1 = constant {dtype=f32, shape=[], values=[2.0]}
  %2 = sqrt %1
  %3 = iota {shape=[3], dim=0, dtype=f32}
  %4 = mul %3, %2
  %5 = add %x, %4
  %6 = expand %2 {shape=[n, 3]}
  %7 = div %5, %6
  output "o" %7
})");
  const ir::Graph after = constant_fold(graph);
  CHECK(text(after) == R"(graph @g(input %x: f32[n, 3]) {
  %1 = constant {dtype=f32, shape=[], values=[1.4142135381698608]} : f32[]
  %2 = constant {dtype=f32, shape=[3], values=[0.0, 1.4142135381698608, 2.8284270763397217]} : f32[3]
  %3 = add %x, %2 : f32[n, 3]
  %4 = expand %1 {shape=[n, 3]} : f32[n, 3] strided
  %5 = div %3, %4 : f32[n, 3]
  output "o" %5
}
)");
  const Tensors arguments = random_arguments(graph, {{"n", 2}});
  CHECK(interpret(graph, arguments).at("o").same_bits(interpret(after, arguments).at("o")));
}

TEST_CASE("constant_fold: large, symbolic and random values are unchanged", "[constant_fold]") {
  const ir::Graph graph = parse(R"(graph @g(state %s: i64[2]) {
  %1 = iota {shape=[n, 1], dim=0, dtype=i64}
  %2 = iota {shape=[1, n], dim=1, dtype=i64}
  %3 = le %2, %1
  %4 = iota {shape=[65], dim=0, dtype=i64}
  %5 = add %4, %4
  %6 = random_uniform %s {shape=[2], dtype=f32, stream=0}
  %7 = exp %6
  %8 = constant {dtype=f64, shape=[2], values=[1.0, 2.0]}
  %9 = constant {dtype=i64, shape=[1], values=[5.0]}
  %10 = gather %8, %9 {dim=0}
  %11 = iota {shape=[n, 0], dim=0, dtype=i64}
  %12 = add %11, %11
  output "3" %3
  output "12" %12
  output "5" %5
  output "7" %7
  output "10" %10
})");
  CHECK(text(constant_fold(graph)) == text(graph));
}

TEST_CASE("constant_fold: constants that sizes of a run are applied to are unchanged", "[constant_fold]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n]) {
  %1 = constant {dtype=f64, shape=[], values=[1.0]}
  body @halve(state %h: f64[]) {
    %1 = constant {dtype=f64, shape=[], values=[0.5]}
    %2 = mul %h, %1
    update %h <- %2
  }
  %2 = loop %1 {body=@halve, trips=n}
  %3 = constant {dtype=f64, shape=[3], values=[1.0, 2.0, 3.0]}
  %4 = slice %3 {dim=0, start=n, stop=n + 1}
  %5 = neg %4
  output "2" %2
  output "5" %5
})");
  CHECK(text(constant_fold(graph)) == text(graph));
}

TEST_CASE("constant_fold: integers are exact beyond the f64 range", "[constant_fold]") {
  const ir::Graph graph = parse(R"(graph @g() {
  %1 = constant {dtype=i64, shape=[], values=[9007199254740992.0]}
  %2 = constant {dtype=i64, shape=[], values=[1.0]}
  %3 = add %1, %2
  %4 = constant {dtype=i64, shape=[2], values=[9223372036854775807, 0]}
  %5 = sub %4, %2
  output "3" %3
  output "5" %5
})");
  CHECK(text(constant_fold(graph)) == R"(graph @g() {
  %1 = constant {dtype=i64, shape=[], values=[9007199254740993]} : i64[]
  %2 = constant {dtype=i64, shape=[2], values=[9223372036854775806, -1.0]} : i64[2]
  output "3" %1
  output "5" %2
}
)");
}

TEST_CASE("constant_fold: a cast of a constant rounds once", "[constant_fold]") {
  const ir::Graph graph = constant_fold(parse(R"(graph @g() {
  %1 = constant {dtype=f64, shape=[], values=[1.0004882812509095]}
  %2 = cast %1 {dtype=f16}
  %3 = constant {dtype=i64, shape=[], values=[1157425104234217473]}
  %4 = cast %3 {dtype=bf16}
  output "2" %2
  output "4" %4
})"));
  CHECK(interpret(graph, {}).at("2").get(0) == 1.0009765625);
  CHECK(interpret(graph, {}).at("4").get(0) == 0x1.02p60);
}
