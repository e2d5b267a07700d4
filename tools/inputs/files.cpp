#include "tools/inputs/files.h"

#include <unistd.h>

#include "ir/tensor/text/parser.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "runtime/files/file_io.h"
#include "runtime/files/write/atomic_file.h"
#include "tools/pretrained/graph_part.h"
#include "tools/streams.h"

namespace lathe::tools {

std::string read_text(const std::string& path) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 28;
  if (path != "-") return read_file(path, limit);
  return read_stream(STDIN_FILENO, limit, "standard input");
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") {
    print_text(text);
    return;
  }
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

ir::Graph load_graph(const std::string& path, const ir::OpSet& ops) {
  if (importing::is_importable(path)) return load_model(path).graph;
  if (is_model_folder(path)) return pretrained_graph(path, GraphPart::logits);
  return ir::parse_graph(read_text(path), ops, path == "-" ? "<stdin>" : std::string_view(path));
}

bool has_weights(const std::string& path) { return importing::is_importable(path) || is_model_folder(path); }

Parameters weights_of(const std::string& path) {
  return importing::is_importable(path) ? importing::import_graph(path).parameters : pretrained_weights(path);
}

LoadedModel load_model(const std::string& path, const ir::OpSet& ops) {
  if (importing::is_importable(path)) {
    importing::ImportedGraph imported = importing::import_graph(path);
    return {ir::dce(imported.graph.finish()), std::move(imported.parameters)};
  }
  ir::Graph graph = load_graph(path, ops);
  return {std::move(graph), is_model_folder(path) ? pretrained_weights(path) : Parameters()};
}

}  // namespace lathe::tools
