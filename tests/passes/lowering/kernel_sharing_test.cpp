#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "tests/passes/support.h"
#include "tests/support/programs/program_interpreter.h"

using namespace lathe;

namespace {

/// Draws from two streams for two inputs, as in the layers of a model; `last` is %2 or a %3 computed from it.
ir::Graph two_layers(int first, int second, std::string_view last = "%2", std::string_view more = "") {
  return ir::test::parse(fmt::format(R"(graph @g(state %r: i64[2], input %x: f32[n, 7], input %y: f32[m, 7]) {{
  %1 = dropout %x, %r {{p=0.5, stream={}}}
  %2 = dropout %y, %r {{p=0.5, stream={}}}
  {}
  output "a" %1
  output "b" {}
}})",
                                     first, second, more, last));
}

std::size_t kernels(const ir::Graph& graph) { return test::ProgramInterpreter(graph).program().kernels.size(); }

}  // namespace

TEST_CASE("layers that differ only in their random stream share a kernel and draw different numbers") {
  const ir::Graph graph = two_layers(3, 2000000000);
  const test::ProgramInterpreter program(graph);
  CHECK(program.program().regions == 2);
  CHECK(program.program().kernels.size() == 1);
  const Tensors arguments = ir::test::random_arguments(graph, {{"n", 5}, {"m", 4}});
  const Tensors wanted = ir::interpret(graph, arguments), found = program.run(arguments);
  for (const char* name : {"a", "b"}) CHECK(ir::test::distance(found.at(name), wanted.at(name)) == 0);
}

TEST_CASE("regions that differ only in their random streams are lowered once and draw different numbers") {
  // The third region draws twice from one stream, the others from two.
  const ir::Graph graph =
      ir::test::parse(R"(graph @g(state %r: i64[2], input %x: f32[n, 8], parameter %w: f32[8, 8]) {
  %1 = contract %x, %w {spec="ac,bc->ab"}
  %2 = dropout %1, %r {p=0.5, stream=3}
  %3 = dropout %2, %r {p=0.25, stream=4}
  %4 = contract %3, %w {spec="ac,bc->ab"}
  %5 = dropout %4, %r {p=0.5, stream=7}
  %6 = dropout %5, %r {p=0.25, stream=3}
  %7 = contract %6, %w {spec="ac,bc->ab"}
  %8 = dropout %7, %r {p=0.5, stream=9}
  %9 = dropout %8, %r {p=0.25, stream=9}
  output "y" %9
})");
  const test::ProgramInterpreter program(graph);
  CHECK(program.program().launches.size() == 3);
  CHECK(program.program().kernels.size() == 2);
  const Tensors arguments = ir::test::random_arguments(graph, {{"n", 5}});
  CHECK(ir::test::distance(program.run(arguments).at("y"), ir::interpret(graph, arguments).at("y")) < 1e-5);
}

TEST_CASE("layers that compute different things have separate kernels") {
  CHECK(kernels(two_layers(3, 4, "%3", "%3 = exp %2")) == 2);
}

TEST_CASE("users of different slices of a value share a kernel") {
  const auto graph = [](int parts, int read) {
    std::string text = fmt::format("graph @g(input %x: f32[n, {}, 16], parameter %w: f32[16, 16]) {{\n", parts);
    for (int i = 1; i <= read; ++i)
      text += fmt::format(
          "  %s{0} = slice %x {{dim=1, start={0}, stop={1}}}\n  %v{0} = squeeze %s{0} {{dim=1}}\n"
          "  %p{0} = contract %v{0}, %w {{spec=\"ac,bc->ab\"}}\n  output \"y{0}\" %p{0}\n",
          i, i + 1);
    return ir::test::parse(text + "}");
  };
  CHECK(kernels(graph(9, 8)) == kernels(graph(9, 1)));
  CHECK(kernels(graph(64, 60)) == kernels(graph(64, 1)));
  CHECK(kernels(graph(3, 2)) == kernels(graph(3, 1)) + 1);  // few parts: their offsets are in the code
  const ir::Graph step = graph(16, 12);
  const Tensors arguments = ir::test::random_arguments(step, {{"n", 5}});
  const Tensors wanted = ir::interpret(step, arguments), found = test::ProgramInterpreter(step).run(arguments);
  for (int i = 1; i <= 12; ++i)
    CHECK(ir::test::distance(found.at(fmt::format("y{}", i)), wanted.at(fmt::format("y{}", i))) < 1e-5);
}
