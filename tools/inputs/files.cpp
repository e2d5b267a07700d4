#include "tools/inputs/files.h"

#include <fmt/core.h>
#include <unistd.h>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/files/file_io.h"
#include "runtime/files/write/atomic_file.h"
#include "tools/options/arguments.h"
#include "tools/plugins/op_libraries.h"
#include "tools/pretrained/graph_part.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

constexpr std::string_view fix_dim = "--fix-dim";

void require_no_ops(const std::string& path, const GraphSource& source) {
  if (!source.ops.empty())
    throw UserError(fmt::format("--ops has no effect on {}", path), "usage",
                    "leave it out: only IR text has ops of libraries");
}

}  // namespace

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

CLI::Option* add_fix_dim_option(CLI::App& command, std::vector<std::string>& sizes) {
  return command
      .add_option(std::string(fix_dim), sizes,
                  "Number in place of a named dim, as NAME=SIZE (repeatable). Sizes that the import of an ONNX or a "
                  ".pt2 file must know may follow from it")
      ->delimiter(',')
      ->allow_extra_args(false);
}

DimBindings fixed_dims(const std::vector<std::string>& sizes) { return parse_dims(sizes, fix_dim); }

std::array<CLI::Option*, 2> add_source_options(CLI::App& command, GraphSource& source) {
  return {add_ops_option(command, source.ops), add_fix_dim_option(command, source.sizes)};
}

ir::Graph load_graph(const std::string& path, const GraphSource& source) {
  if (importing::is_importable(path)) return load_model(path, source).graph;
  const bool is_folder = is_model_folder(path);
  if (is_folder) require_no_ops(path, source);
  ir::Graph graph = is_folder ? pretrained_graph(path, GraphPart::logits)
                              : ir::parse_graph(read_text(path), load_ops(source.ops),
                                                path == "-" ? "<stdin>" : std::string_view(path));
  return source.sizes.empty() ? graph : ir::with_sizes(graph, given_dims(graph, source.sizes, fix_dim));
}

bool has_weights(const std::string& path) { return importing::is_importable(path) || is_model_folder(path); }

Parameters weights_of(const std::string& path) {
  return importing::is_importable(path) ? importing::import_graph(path).parameters : pretrained_weights(path);
}

LoadedModel load_model(const std::string& path, const GraphSource& source) {
  if (importing::is_importable(path)) {
    require_no_ops(path, source);
    importing::ImportedGraph imported = importing::import_graph(path, {.sizes = fixed_dims(source.sizes)});
    return {ir::dce(imported.graph.finish()), std::move(imported.parameters)};
  }
  ir::Graph graph = load_graph(path, source);
  return {std::move(graph), is_model_folder(path) ? pretrained_weights(path) : Parameters()};
}

}  // namespace lathe::tools
