#include "models/import/import.h"

#include <fmt/core.h>

#include <utility>

#include "ir/support/error.h"
#include "models/import/onnx/import_model.h"
#include "models/import/pt2/import_program.h"
#include "runtime/files/paths.h"

namespace lathe::importing {

ImportedGraph as_imported(ir::Graph graph) {
  ImportedGraph imported{.graph = Graph(std::move(graph)), .outputs = {}, .parameters = {}};
  for (const ir::Output& output : imported.graph.ir().outputs)
    imported.outputs.emplace(output.name, Tensor(ir::Value(imported.graph.builder(), output.value)));
  return imported;
}

bool is_importable(const std::filesystem::path& path) {
  return path.extension() == ".onnx" || path.extension() == ".pt2";
}

ImportedGraph import_graph(const std::filesystem::path& file, const ImportOptions& options) {
  if (!is_importable(file))
    throw UserError(fmt::format("{} is neither an ONNX file nor a .pt2 file", quote_path(file)), "import_file",
                    "give a file whose name ends with .onnx or .pt2");
  if (file.extension() == ".pt2" &&
      !(options.shapes.empty() && options.caches.empty() && options.states.empty() && options.parents.empty()))
    throw UserError(
        fmt::format("{}: shapes, caches, parents and states of inputs are options for ONNX files", quote_path(file)),
        "import_unsupported", "export the program with the wanted sizes");
  if (file.extension() == ".pt2") return pt2::import_program(file, options);
  return onnx::import_model(file, options);
}

}  // namespace lathe::importing
