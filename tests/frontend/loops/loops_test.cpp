#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/stage.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/graphs/loop_cases.h"

/// Loops against one copy of the body per iteration, with first and second derivatives; their text and errors.
using namespace lathe;
using Catch::Contains;
using lathe::test::LoopCase;

namespace {

void check_equal(const Tensors& found, const Tensors& wanted, double tolerance) {
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    const HostTensor& other = found.at(name);
    REQUIRE(other.shape() == tensor.shape());
    double most = 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      most = std::max(most, std::abs(other.get(i) - tensor.get(i)) / (1 + std::abs(tensor.get(i))));
    CHECK(most < tolerance);
  }
}

template <class Build>
std::string error_of(Build&& build) {
  Graph g{"wrong"};
  try {
    build(g);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("loops equal their unrolled form, with first and second derivatives", "[loops]") {
  for (const LoopCase& each : test::loop_cases()) {
    CAPTURE(each.name);
    const Tensors arguments = each.arguments(f64);
    const Tensors wanted = ir::interpret(each.graph(f64, true, true), arguments);
    const ir::Graph graph = each.graph(f64, false, true);
    check_equal(ir::interpret(graph, arguments), wanted, 1e-11);
    const ir::Graph simpler = ir::run_pipeline(graph, ir::default_pipeline()).graph;
    check_equal(ir::interpret(simpler, arguments), wanted, 1e-11);
  }
}

TEST_CASE("loops print and parse", "[loops]") {
  for (const LoopCase& each : test::loop_cases()) {
    CAPTURE(each.name);
    const ir::Graph graph = each.graph(f32, false);
    const std::string text = ir::print(graph);
    CHECK(ir::print(ir::parse_graph(text)) == text);
    CHECK(ir::structurally_equal(ir::parse_graph(text), graph, {.names = false}));
  }
}
