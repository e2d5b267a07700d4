#include <fmt/core.h>

#include <fstream>
#include <iostream>

#include "ir/support/error.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/export/support/export_case.h"

/// Writes each sample of each op that is exported to a folder of its own below the given one: model.onnx, the
/// arguments, and the outputs of the interpreter, as check_exports.py reads them.
using namespace lathe;
using namespace lathe::test;

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: export_samples FOLDER\n";
    return 2;
  }
  int next = 0;
  for_each_export_sample([&](const ExportSample& sample) {
    for (const std::int64_t opset : {18, 23}) {
      const std::filesystem::path folder = std::filesystem::path(arguments[1]) / fmt::format("{:04}", next);
      std::filesystem::create_directories(folder);
      try {
        exporting::write_onnx(sample.graph, {}, folder / "model.onnx", {.opset = opset});
      } catch (const UserError&) {
        continue;  // tests/export/ops_test.cpp checks which ops are refused
      }
      write_safetensors(folder / "arguments.safetensors", sample.arguments);
      write_safetensors(folder / "outputs.safetensors", sample.outputs);
      std::ofstream(folder / "about.txt") << sample.description << ", opset " << opset << '\n';
      ++next;
    }
  });
  std::cout << next << " samples\n";
}
