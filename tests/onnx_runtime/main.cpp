#include <fmt/core.h>

#include <fstream>
#include <iostream>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/export/support/export_case.h"
#include "tests/export/support/loop_graphs.h"
#include "tests/support/goldens/golden.h"
#include "tests/support/texts/test_data.h"

/// Writes each sample of each op that is exported, graphs with loops, and each golden graph with its gradients, to a
/// folder of its own below the given one: model.onnx, the inputs, and the outputs of the interpreter, as
/// check_exports.py reads them.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr std::int64_t opsets[] = {18, 23};

class Folders {
 public:
  explicit Folders(std::filesystem::path root) : root_(std::move(root)) {}

  /// Returns false if the graph is not exported: tests/export/ops_test.cpp checks which ones are refused.
  bool write(const std::string& about, const ir::Graph& graph, const Parameters& parameters, const Tensors& inputs,
             const Tensors& outputs, std::int64_t opset) {
    const std::filesystem::path folder = root_ / fmt::format("{:05}", count_);
    std::filesystem::create_directories(folder);
    try {
      exporting::write_onnx(graph, parameters, folder / "model.onnx", {.opset = opset});
    } catch (const UserError&) {
      return false;
    }
    write_safetensors(folder / "arguments.safetensors", inputs);
    write_safetensors(folder / "outputs.safetensors", outputs);
    std::ofstream(folder / "about.txt") << about << ", opset " << opset << '\n';
    ++count_;
    return true;
  }
  int count() const { return count_; }

 private:
  std::filesystem::path root_;
  int count_ = 0;
};

/// Writes the graphs that it runs.
class WritingRunner : public golden::GoldenRunner {
 public:
  WritingRunner(Folders& folders, std::string about) : folders_(folders), about_(std::move(about)) {}

  std::unique_ptr<golden::Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<WritingProgram>(*this, graph);
  }

 private:
  struct WritingProgram : golden::Program {
    WritingProgram(WritingRunner& runner, ir::Graph given) : runner(runner), graph(std::move(given)) {}
    Tensors run(const Tensors& arguments) override {
      Tensors results = ir::interpret(graph, arguments);
      const auto [parameters, inputs] = divided(graph, arguments);
      for (const std::int64_t opset : opsets)
        if (!runner.folders_.write(runner.about_, graph, parameters, as_reals(inputs), as_reals(results), opset))
          std::cerr << runner.about_ << " is not exported\n";
      return results;
    }
    WritingRunner& runner;
    ir::Graph graph;
  };

  Folders& folders_;
  std::string about_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: export_samples FOLDER\n";
    return 2;
  }
  Folders folders(arguments[1]);
  for (const golden::Case& which : golden::cases())
    for (const DType dtype : {f64, f32}) {
      WritingRunner runner(folders, fmt::format("golden {} in {}", which.name, name(dtype)));
      golden::compare_values(which, golden::load(test_data("goldens"), which.name), runner, dtype, {});
    }
  for (const DType dtype : {f64, f32})
    for (const LoopGraph& each : loop_graphs(dtype)) {
      const auto [parameters, inputs] = divided(each.graph, each.arguments);
      for (const std::int64_t opset : opsets)
        folders.write(each.name, each.graph, parameters, inputs, ir::interpret(each.graph, each.arguments), opset);
    }
  for_each_export_sample([&](const ExportSample& sample) {
    for (const std::int64_t opset : opsets)
      folders.write(sample.description, sample.graph, {}, sample.arguments, sample.outputs, opset);
  });
  std::cout << folders.count() << " models\n";
}
