#include <catch2/catch.hpp>

#include "ir/tensor/interpret/interpreter.h"
#include "passes/transforms/dce.h"
#include "tests/export/support/export_case.h"
#include "tests/support/goldens/golden.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Interprets the import of the exported graph.
class ImportedProgram : public golden::Program {
 public:
  ImportedProgram(const ir::Graph& graph, std::int64_t opset) : graph_(graph), opset_(opset) {}

  Tensors run(const Tensors& arguments) override {
    const auto [parameters, inputs] = divided(graph_, arguments);
    const importing::ImportedGraph imported =
        importing::import_graph(exported(graph_, parameters, {.opset = opset_}));
    const ir::Graph graph = ir::dce(imported.graph.finish());
    return ir::interpret(graph, arguments_of(graph, imported.parameters, inputs));
  }

 private:
  ir::Graph graph_;
  std::int64_t opset_;
};

class ImportRunner : public golden::GoldenRunner {
 public:
  explicit ImportRunner(std::int64_t opset) : opset_(opset) {}
  std::unique_ptr<golden::Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<ImportedProgram>(graph, opset_);
  }

 private:
  std::int64_t opset_;
};

}  // namespace

TEST_CASE("goldens: the imports of exported graphs and of their gradients give the golden values") {
  // Attributes of ONNX nodes, such as the scale of an attention, are f32.
  const golden::Tolerance tolerance{.outputs = 2e-7, .gradients = 2e-6};
  for (const golden::Case& which : golden::cases())
    for (const std::int64_t opset : {18, 23}) {
      CAPTURE(which.name, opset);
      ImportRunner runner(opset);
      const auto compared =
          golden::compare_values(which, golden::load(test_data("goldens"), which.name), runner, f64, tolerance);
      INFO(golden::report(compared));
      CHECK_FALSE(compared.empty());
      CHECK(golden::all_good(compared));
    }
}
