#include <fmt/core.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "ir/support/error.h"
#include "tests/import/support/model_case.h"

/// Runs test folders of the ONNX project. Reads folders from standard input, one a line, and prints one line for
/// each: "pass"; "pass_fixed" if the sizes or axes of the graph follow from inputs, whose values are then given at
/// import; "missing" (an error that names an op or a feature), "wrong" (other numbers) or "error", with the reason.
/// `--compiled` runs compiled code instead of the interpreter.
using namespace lathe;
using namespace lathe::test;

namespace {

namespace fs = std::filesystem;

/// Which inputs are given at import.
enum class Fixed { none, small_operands, all_small };

/// Whether an input can be a shape, axes, scales or a flag. Data are usually the first input.
bool is_fixed(const HostTensor& tensor, bool is_first, Fixed fixed) {
  if (fixed == Fixed::none || tensor.rank() > 1 || tensor.numel() > 64) return false;
  const bool is_structural =
      tensor.dtype() == i64 || tensor.dtype() == i32 || tensor.dtype() == boolean || is_float(tensor.dtype());
  return is_structural && (!is_first || fixed == Fixed::all_small);
}

std::string run_folder(const fs::path& folder, bool is_compiled, Fixed fixed) {
  // Names what is missing, even if the data of the test are of a type that Lathe does not have.
  if (fixed == Fixed::none) importing::import_graph(folder / "model.onnx");
  for (const ModelRun& run : model_runs(folder)) {
    Tensors arguments;
    importing::ImportOptions options;
    for (const auto& [input, tensor] : run.inputs)
      (is_fixed(tensor, input == run.first_input, fixed) ? options.inputs : arguments).set(input, tensor);
    const importing::ImportedGraph imported = importing::import_graph(folder / "model.onnx", options);
    const Tensors results = run_imported(imported, arguments, is_compiled);
    if (const auto fault = difference(results, run.outputs, {.relative = 1e-3, .absolute = 1e-6}))
      return "wrong " + *fault;
  }
  return fixed == Fixed::none ? "pass" : "pass_fixed";
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string outcome(const fs::path& folder, bool is_compiled, Fixed fixed) {
  try {
    return run_folder(folder, is_compiled, fixed);
  } catch (const UserError& error) {
    if (error.label() == "import_size" && fixed != Fixed::all_small)
      return outcome(folder, is_compiled, fixed == Fixed::none ? Fixed::small_operands : Fixed::all_small);
    return one_line(fmt::format("missing {}", error.what()));
  } catch (const std::exception& error) {
    return one_line(fmt::format("error {}", error.what()));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool is_compiled = count > 1 && std::string(arguments[1]) == "--compiled";
  for (std::string folder; std::getline(std::cin, folder);)
    std::cout << fs::path(folder).filename().string() << ' ' << outcome(folder, is_compiled, Fixed::none)
              << std::endl;
}
