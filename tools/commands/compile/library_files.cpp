#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/syntax/commas.h"
#include "passes/transforms/dtypes/convert_dtype.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/emit_library.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/target.h"
#include "runtime/write_library.h"
#include "tools/commands/compile/emit_options.h"
#include "tools/commands/compile/helper_headers.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/pretrained/graph_part.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

/// Returns the CPU levels of --target. A comma starts a level, unless a feature follows:
/// x86-64-v3,x86-64-v4,+amx-tile.
std::vector<std::string> levels_of(const std::string& targets) {
  std::vector<std::string> levels;
  for (const std::string_view part : syntax::at_commas(targets)) {
    const bool is_feature = part.starts_with('+') || part.starts_with('-');
    if (is_feature && !levels.empty())
      (levels.back() += ',') += part;
    else
      levels.emplace_back(part);
  }
  return levels;
}

/// Returns the graphs of a model's directory that --part lists.
std::vector<LibraryGraph> folder_graphs(const EmitOptions& options) {
  std::vector<LibraryGraph> graphs;
  for (const auto& [name, given] : {std::pair{"--ops", &options.source.ops}, {"--fix-dim", &options.source.sizes}})
    if (!given->empty())
      throw UserError(fmt::format("{} has no effect on {}", name, options.files[0]), "usage", "leave it out");
  const std::vector<std::string_view> listed = syntax::at_commas(options.part);
  const std::vector<std::string> parts(listed.begin(), listed.end());
  for (const std::string& part : parts) {
    const auto known = graph_parts().find(part);
    if (known == graph_parts().end())
      throw UserError(fmt::format("--part {}: a model has no part '{}'", options.part, part), "usage",
                      "give logits, loss, prompt, ragged, step, states or pooled");
    graphs.push_back({parts.size() > 1 ? part : "",
                      pretrained_graph(options.files[0], known->second, {.dtype = *parse_dtype(options.dtype)})});
  }
  return graphs;
}

/// Returns the graphs of files. Several are told apart by their names. `weights` becomes the weights of the first
/// file.
std::vector<LibraryGraph> file_graphs(const EmitOptions& options, Parameters& weights) {
  std::vector<LibraryGraph> graphs;
  for (const std::string& file : options.files) {
    if (is_model_folder(file))
      throw UserError(fmt::format("{} is a model's directory, next to other graphs", file), "usage",
                      "compile a directory alone, with --part prompt,step for several of its graphs");
    auto [graph, values] = load_model(file, options.source);
    if (graphs.empty()) weights = std::move(values);
    if (options.dtype != "f32") graph = ir::convert_dtype(graph, f32, *parse_dtype(options.dtype));
    graphs.push_back({options.files.size() > 1 ? graph.name : "", std::move(graph)});
  }
  return graphs;
}

/// Returns the values to embed: those of the graphs' parameters in the files of --weights, or in `stored`.
Tensors embedded_values(const EmitOptions& options, const std::vector<LibraryGraph>& graphs,
                        const Parameters& stored) {
  Tensors values;
  if (!options.embed_weights) {
    if (!options.weights.empty())
      throw UserError("--weights has an effect with --embed-weights only", "usage",
                      "add --embed-weights; without it, the caller of the library has the weights");
    return values;
  }
  std::vector<SafetensorsFile> files;
  for (const std::string& file : options.weights) files.push_back(SafetensorsFile::open(file));
  if (files.empty() && !has_weights(options.files[0]))
    throw UserError("--embed-weights needs the values of the parameters", "usage", "give --weights FILE.safetensors");
  for (const LibraryGraph& graph : graphs)
    for (const ir::ValueId id : graph.graph.arguments()) {
      const ir::Node& node = graph.graph[id];
      if (node.op != &ir::ops::parameter) continue;
      const auto file = std::ranges::find_if(files, [&](const auto& each) { return each.contains(node.name); });
      if (file != files.end())
        values.insert_or_assign(node.name, file->tensor(node.name));
      else if (stored.contains(node.name))
        values.insert_or_assign(node.name, stored.snapshot(node.name));
      else
        throw UserError(fmt::format("no file has the parameter {} of @{}", node.name, graph.graph.name),
                        "argument_missing", "give all files with --weights");
    }
  return values;
}

/// Writes a file to the folder of --output, and a line about it to standard output.
void write_file(const EmitOptions& options, const LibraryFile& file) {
  const std::string path = write_library_file(options.output, file).string();
  write_text("-", fmt::format("{:<40} {:>12} bytes\n", path, file.bytes.size()));
}

void write_helpers(const EmitOptions& options) {
  write_file(options, {"lathe_pool.h", std::string(embedded_lathe_pool_h)});
  write_file(options, {"lathe_memory.h", std::string(embedded_lathe_memory_h)});
  write_file(options, {"lathe_cuda.h", std::string(embedded_lathe_cuda_h)});
  write_file(options, {"lathe_safetensors.h", std::string(embedded_lathe_safetensors_h)});
  write_file(options, {"lathe_call.hpp", std::string(embedded_lathe_call_hpp)});
}

}  // namespace

void write_library_files(const EmitOptions& options) {
  const std::set<std::string> kinds = emitted_kinds(options.emit);
  const std::vector<std::string> levels = levels_of(options.target);
  for (const std::string& level : levels) Target::named(level);  // reject a wrong name first
  if (options.prefix.empty())
    throw UserError("a library needs a prefix for the names of its functions and types", "usage",
                    "give --prefix NAME, such as --prefix gpt2_step");
  if (options.packed_bytes > 0 && levels[0].starts_with("cuda"))
    throw UserError("--packed-weights has no effect on a library for GPUs", "usage", "leave it out");
  const bool is_folder = options.files.size() == 1 && is_model_folder(options.files[0]);
  Parameters stored;
  const std::vector<LibraryGraph> graphs = is_folder ? folder_graphs(options) : file_graphs(options, stored);
  if (is_folder && options.embed_weights) stored = pretrained_weights(options.files[0]);
  const DimBindings sizes = parse_dims(options.dims);
  for (const LibraryGraph& graph : graphs) require_chunk_sizes(options.lower, graph.graph, sizes);
  DiskCache cache(cache_folder());
  const EmittedLibrary library = emit_library(graphs, {.prefix = options.prefix,
                                                       .targets = levels,
                                                       .most = parse_dims(options.most, "--max"),
                                                       .sizes = sizes,
                                                       .evaluation = options.evaluation,
                                                       .lower = options.lower,
                                                       .packed_bytes = options.packed_bytes,
                                                       .embedded = embedded_values(options, graphs, stored),
                                                       .threads = options.threads,
                                                       .cuda_folders = cuda_folders(),
                                                       .cache = &cache});
  if (options.packed_bytes > 0 && library.packed_bytes == 0)
    print_error(
        "note: --packed-weights: no product reads a weight whose packed copy fits; the library has no function "
        "pack\n");
  make_folders(options.output);
  if (kinds.contains("object"))
    for (const LibraryFile& object : library.objects) write_file(options, object);
  if (kinds.contains("archive")) write_file(options, library.archive);
  if (kinds.contains("header")) write_file(options, library.header);
  if (kinds.contains("source-list")) write_file(options, library.sources);
  if (kinds.contains("helpers")) write_helpers(options);
}

}  // namespace lathe::tools
