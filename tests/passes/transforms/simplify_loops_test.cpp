#include "passes/transforms/loops/simplify_loops.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("simplify-loops: two loops whose carries are equal become one", "[loops]") {
  const ir::Graph graph = parse(R"(graph @g(input %h: f64[3], input %x: f64[n, 3]) {
  body @one(state %h: f64[3], input %x: f64[3]) {
    %1 = add %h, %x
    output "sum" %1
    update %h <- %1
  }
  %1 = loop %h, %x {body=@one, trips=n, sequences=1, result=1}
  body @two(state %s: f64[3], input %y: f64[3]) {
    %1 = add %s, %y
    %2 = mul %1, %1
    output "square" %2
    output "sum" %1
    update %s <- %1
  }
  %2 = loop %h, %x {body=@two, trips=n, sequences=1, result=1}
  %3 = loop %h, %x {body=@two, trips=n, sequences=1}
  output "sums" %1
  output "squares" %2
  output "last" %3
})");
  const ir::Graph after = simplify_loops(graph);
  CHECK(text(after) == R"(graph @g(input %h: f64[3], input %x: f64[n, 3]) {
  body @one(state %h: f64[3], input %x: f64[3]) {
    %1 = add %h, %x : f64[3]
    %2 = mul %1, %1 : f64[3]
    output "sum" %1
    output "square" %2
    update %h <- %1
  }
  %1 = loop %h, %x {body=@one, trips=n, sequences=1} : f64[3]
  %2 = loop %h, %x {body=@one, trips=n, sequences=1, result=1} : f64[n, 3]
  %3 = loop %h, %x {body=@one, trips=n, sequences=1, result=2} : f64[n, 3]
  output "sums" %2
  output "squares" %3
  output "last" %1
}
)");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 4}}), 0);
}

TEST_CASE("simplify-loops: loops that carry different values stay apart", "[loops]") {
  const ir::Graph graph = parse(R"(graph @g(input %h: f64[3], input %x: f64[n, 3]) {
  body @one(state %h: f64[3], input %x: f64[3]) {
    %1 = add %h, %x
    update %h <- %1
  }
  %1 = loop %h, %x {body=@one, trips=n, sequences=1}
  body @two(state %h: f64[3], input %x: f64[3]) {
    %1 = sub %h, %x
    update %h <- %1
  }
  %2 = loop %h, %x {body=@two, trips=n, sequences=1}
  %3 = loop %h, %x {body=@two, trips=n, sequences=1, reverse=true}
  output "1" %1
  output "2" %2
  output "3" %3
})");
  CHECK(text(simplify_loops(graph)) == text(graph));
}

TEST_CASE("simplify-loops: values that no result needs are dropped, and values that do not change move out",
          "[loops]") {
  const ir::Graph graph = parse(
      R"(graph @g(input %h: f64[3], input %c: f64[3], input %x: f64[n, 3], input %w: f64[3], input %unused: f64[n, 2]) {
  %1 = constant {dtype=f64, shape=[], values=[2.0]}
  %2 = expand %1 {shape=[3]}
  body @step(state %h: f64[3], state %c: f64[3], state %fixed: f64[3], input %x: f64[3], input %unused: f64[2], input %w: f64[3], input %two: f64[3]) {
    %1 = exp %w
    %2 = mul %1, %fixed
    %3 = mul %2, %two
    %4 = add %h, %3
    %5 = add %4, %x
    %6 = add %c, %x
    output "dropped" %6
    update %h <- %5
    update %c <- %6
    update %fixed <- %fixed
  }
  %3 = loop %h, %c, %w, %x, %unused, %w, %2 {body=@step, trips=n, sequences=2}
  %4 = loop %h, %c, %w, %x, %unused, %w, %2 {body=@step, trips=n, sequences=2, result=2}
  output "h" %3
  output "fixed" %4
})");
  const ir::Graph after = simplify_loops(graph);
  CHECK(
      text(after) ==
      R"(graph @g(input %h: f64[3], input %c: f64[3], input %x: f64[n, 3], input %w: f64[3], input %unused: f64[n, 2]) {
  %1 = constant {dtype=f64, shape=[], values=[2.0]} : f64[]
  %2 = expand %1 {shape=[3]} : f64[3] strided
  %3 = exp %w : f64[3]
  %4 = mul %3, %w : f64[3]
  %5 = mul %4, %2 : f64[3]
  body @step(state %h: f64[3], input %x: f64[3], input %mul: f64[3]) {
    %1 = add %h, %mul : f64[3]
    %2 = add %1, %x : f64[3]
    update %h <- %2
  }
  %6 = loop %h, %x, %5 {body=@step, trips=n, sequences=1} : f64[3]
  output "h" %6
  output "fixed" %w
}
)");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 4}}), 0);
}

TEST_CASE("simplify-loops: a loop without iterations returns its first values", "[loops]") {
  const ir::Graph graph = parse(R"(graph @g(input %h: f64[3], input %w: f64[3]) {
  body @step(state %h: f64[3], input %w: f64[3]) {
    %1 = exp %w
    update %h <- %1
  }
  %1 = loop %h, %w {body=@step, trips=n}
  %2 = loop %h, %w {body=@step, trips=0}
  output "1" %1
  output "2" %2
})");
  for (const std::int64_t n : {0, 2}) {
    const Tensors arguments = random_arguments(graph, {{"n", n}});
    const InterpretOptions sizes{.dims = {{"n", n}}};
    const Tensors before = interpret(graph, arguments, sizes),
                  after = interpret(simplify_loops(graph), arguments, sizes);
    for (const auto& [name, value] : before)
      for (std::int64_t i = 0; i < 3; ++i) CHECK(after.at(name).get(i) == value.get(i));
  }
}

TEST_CASE("simplify-loops: values that are read twice are visited once", "[loops]") {
  std::string text = R"(graph @g(input %h: f64[3]) {
  body @step(state %h: f64[3]) {
    %1 = iota {shape=[3], dim=0, dtype=f64}
)";
  for (int i = 2; i <= 64; ++i) text += fmt::format("    %{} = mul %{}, %{}\n", i, i - 1, i - 1);
  text += R"(    %65 = add %h, %64
    update %h <- %65
  }
  %1 = loop %h {body=@step, trips=2}
  output "h" %1
})";
  const ir::Graph graph = parse(text);
  CHECK(ir::test::text(simplify_loops(graph)) == ir::test::text(graph));
}
