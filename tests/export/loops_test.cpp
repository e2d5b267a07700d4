#include <catch2/catch.hpp>

#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "tests/export/support/export_case.h"
#include "tests/export/support/loop_graphs.h"
#include "tests/support/tensors/distance.h"

using namespace lathe;
using namespace lathe::test;

TEST_CASE("loops: graphs with loops and their gradients are exported, and imported with the same values") {
  for (const DType dtype : {f64, f32})
    for (const LoopGraph& each : loop_graphs(dtype))
      for (const std::int64_t opset : {18, 23}) {
        CAPTURE(each.name, name(dtype), opset);
        const auto [parameters, inputs] = divided(each.graph, each.arguments);
        const importing::ImportedGraph imported =
            importing::import_graph(exported(each.graph, parameters, {.opset = opset}));
        const ir::Graph graph = ir::dce(imported.graph.finish());
        CHECK(ir::print(graph).find(" loop ") != std::string::npos);
        const Tensors wanted = ir::interpret(each.graph, each.arguments);
        const Tensors got = ir::interpret(graph, arguments_of(graph, parameters, inputs));
        for (const auto& [output, value] : wanted) {
          CAPTURE(output, value.to_string(), got.at(output).to_string());
          CHECK(ir::test::distance(got.at(output), value) <= (dtype == f64 ? 1e-10 : 1e-5));
        }
      }
}

TEST_CASE("loops: sizes that are fixed before the export are fixed in bodies too") {
  for (const LoopGraph& each : loop_graphs(f32)) {
    CAPTURE(each.name);
    const auto [parameters, inputs] = divided(each.graph, each.arguments);
    const ir::Graph fixed = ir::with_sizes(each.graph, {{"T", 5}});
    const importing::ImportedGraph imported = importing::import_graph(exported(fixed, parameters, {.opset = 18}));
    CHECK(ir::print(imported.graph.finish()).find("[T") == std::string::npos);
  }
}
