#include "tests/import/support/model_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/tensor/interpret/interpreter.h"
#include "models/import/onnx/tensor_data.h"
#include "runtime/compile.h"
#include "runtime/files/paths.h"

namespace lathe::test {

namespace {

namespace fs = std::filesystem;

HostTensor read_file_tensor(const fs::path& path) {
  const auto file = MappedFile::open(path);
  onnx::TensorData data(path, file);
  return data.read(onnx::read_tensor(file->bytes(), path.filename().string()));
}

Tensors read_numbered(const fs::path& folder, const std::string& kind, const std::vector<onnx::ValueProto>& values) {
  Tensors all;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const fs::path file = folder / fmt::format("{}_{}.pb", kind, i); path_exists(file))
      all.set(std::string(values[i].name), read_file_tensor(file));
  return all;
}

Tolerance tolerance_of(DType dtype, const Tolerance& f32) {
  if (dtype != bf16 && dtype != f16) return f32;
  return {std::max(f32.relative, dtype == bf16 ? 1.6e-2 : 2e-3), std::max(f32.absolute, 1e-3)};
}

std::optional<std::string> tensor_difference(const HostTensor& got, const HostTensor& expected,
                                             const Tolerance& most) {
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape())
    return fmt::format("{}{} instead of {}{}", name(got.dtype()), shape_to_string(got.shape()),
                       name(expected.dtype()), shape_to_string(expected.shape()));
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.get(i), b = expected.get(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (std::abs(a - b) <= most.absolute + most.relative * std::abs(b)) continue;
    return fmt::format("element {} is {} instead of {}", i, a, b);
  }
  return std::nullopt;
}

}  // namespace

std::vector<ModelRun> model_runs(const fs::path& folder) {
  const auto mapped = MappedFile::open(folder / "model.onnx");
  const onnx::ModelProto model = onnx::read_model(mapped->bytes(), "model.onnx");
  std::vector<ModelRun> runs;
  for (int i = 0; path_exists(folder / fmt::format("test_data_set_{}", i)); ++i) {
    const fs::path set = folder / fmt::format("test_data_set_{}", i);
    const auto& inputs = model.graph->inputs;
    runs.push_back({read_numbered(set, "input", inputs), read_numbered(set, "output", model.graph->outputs),
                    inputs.empty() ? "" : std::string(inputs[0].name)});
  }
  return runs;
}

Tensors run_imported(const importing::ImportedGraph& imported, const Tensors& inputs, bool is_compiled) {
  if (is_compiled) return compile(imported.graph.finish(), {.parameters = imported.parameters}).run(inputs);
  Tensors arguments = inputs;
  arguments.merge(imported.parameters.values());
  return ir::interpret(imported.graph.finish(), arguments);
}

std::optional<std::string> difference(const Tensors& results, const Tensors& expected, const Tolerance& f32) {
  for (const auto& [output, tensor] : expected)
    if (const auto fault = tensor_difference(results.at(output), tensor, tolerance_of(tensor.dtype(), f32)))
      return fmt::format("{}: {}", output, *fault);
  return std::nullopt;
}

}  // namespace lathe::test
