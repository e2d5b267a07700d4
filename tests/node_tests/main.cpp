#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "models/import/import.h"
#include "models/import/onnx/tensor_data.h"
#include "runtime/compile.h"
#include "runtime/files/paths.h"

/// Runs test folders of the ONNX project: model.onnx with test_data_set_*/input_*.pb and output_*.pb. Reads folders
/// from standard input, one a line, and prints one line for each: "pass"; "pass_fixed" if the sizes or axes of the graph
/// follow from inputs, whose values are then given at import; "missing" (an error that names an op or a feature),
/// "wrong" (other numbers) or "error", with the reason. `--compiled` runs compiled code instead of the interpreter.
using namespace lathe;

namespace {

namespace fs = std::filesystem;

struct Named {
  HostTensor tensor;
  std::string name;
};

Named read_file_tensor(const fs::path& path) {
  const auto file = importing::MappedFile::open(path);
  const onnx::TensorProto proto = onnx::read_tensor(file->bytes(), path.filename().string());
  onnx::TensorData data(path, file);
  return {data.read(proto), std::string(proto.name)};
}

/// Files are named "input_0.pb", "input_1.pb", ..
std::vector<Named> read_numbered(const fs::path& folder, const std::string& kind) {
  std::vector<Named> all;
  for (int i = 0; path_exists(folder / fmt::format("{}_{}.pb", kind, i)); ++i)
    all.push_back(read_file_tensor(folder / fmt::format("{}_{}.pb", kind, i)));
  return all;
}

/// Returns the first difference beyond the tolerances of the project's own runner, or nothing.
std::optional<std::string> difference(const HostTensor& got, const HostTensor& expected) {
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape())
    return fmt::format("{}{} instead of {}{}", name(got.dtype()), shape_to_string(got.shape()),
                       name(expected.dtype()), shape_to_string(expected.shape()));
  const bool is_half = expected.dtype() == bf16 || expected.dtype() == f16;
  const double relative = expected.dtype() == bf16 ? 1.6e-2 : is_half ? 2e-3 : 1e-3, absolute = is_half ? 1e-3 : 1e-6;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.get(i), b = expected.get(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::abs(a - b) <= absolute + relative * std::abs(b)) continue;
    return fmt::format("element {} is {} instead of {}", i, a, b);
  }
  return std::nullopt;
}

/// Whether a tensor can be a shape, axes, scales or a flag.
bool is_structural(const HostTensor& tensor) {
  return tensor.dtype() == i64 || tensor.dtype() == i32 || tensor.dtype() == boolean || tensor.dtype() == f32;
}

Tensors run_graph(const importing::ImportedGraph& imported, const Tensors& inputs, bool is_compiled) {
  if (is_compiled) return compile(imported.graph.finish(), {.parameters = imported.parameters}).run(inputs);
  Tensors arguments = inputs;
  arguments.merge(imported.parameters.values());
  return ir::interpret(imported.graph.finish(), arguments);
}

struct Options {
  bool is_compiled = false;
  bool fixes_integers = false;  ///< gives small vectors and scalars at import
};

/// Inputs and outputs are in the order of the model.
std::string run_set(const fs::path& model, const fs::path& set, const Options& options) {
  const auto mapped = importing::MappedFile::open(model);
  const onnx::ModelProto proto = onnx::read_model(mapped->bytes(), "model.onnx");
  const std::vector<Named> inputs = read_numbered(set, "input"), outputs = read_numbered(set, "output");
  Tensors arguments;
  importing::ImportOptions fixed;
  for (std::size_t i = 0; i < inputs.size() && i < proto.graph->inputs.size(); ++i) {
    const HostTensor& tensor = inputs[i].tensor;
    const bool is_small = tensor.numel() <= 64 && tensor.rank() <= 1 && is_structural(tensor);
    (options.fixes_integers && is_small ? fixed.inputs : arguments)
        .set(std::string(proto.graph->inputs[i].name), tensor);
  }
  const importing::ImportedGraph imported = importing::import_graph(model, fixed);
  const Tensors results = run_graph(imported, arguments, options.is_compiled);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string output(proto.graph->outputs[i].name);
    if (const auto fault = difference(results.at(output), outputs[i].tensor))
      return fmt::format("wrong {}: {}", output, *fault);
  }
  return options.fixes_integers ? "pass_fixed" : "pass";
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string run_folder(const fs::path& folder, Options options) {
  try {
    std::string result = "error no data";
    for (int i = 0; path_exists(folder / fmt::format("test_data_set_{}", i)); ++i) {
      result = run_set(folder / "model.onnx", folder / fmt::format("test_data_set_{}", i), options);
      if (!result.starts_with("pass")) break;
    }
    return result;
  } catch (const UserError& error) {
    if (error.label() == "import_size" && !options.fixes_integers)
      return run_folder(folder, {options.is_compiled, true});
    return one_line(fmt::format("missing {}", error.what()));
  } catch (const std::exception& error) {
    return one_line(fmt::format("error {}", error.what()));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_compiled = count > 1 && std::string(arguments[1]) == "--compiled";
  for (std::string folder; std::getline(std::cin, folder);)
    std::cout << fs::path(folder).filename().string() << ' ' << run_folder(folder, {is_compiled, false}) << std::endl;
}
