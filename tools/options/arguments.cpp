#include "tools/options/arguments.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <set>

#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "passes/check/made_up_value.h"
#include "runtime/files/tensors/tensor_file.h"
#include "tools/inputs/files.h"
#include "tools/options/number_option.h"

namespace lathe::tools {

namespace {

std::string spaced(const std::string& text) { return text.empty() ? text : text + " "; }

/// Checks that --dim names unknown dims of the graph.
void check_dim_names(const ir::Graph& graph, const DimBindings& dims, std::string_view option) {
  std::set<std::string> known;
  for (const ir::Node& node : graph.nodes)
    for (const Dim& dim : node.type.shape)
      for (std::string& name : dim.unknowns()) known.insert(std::move(name));
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto& [name, size] : dims)
    if (!known.count(name))
      throw UserError(fmt::format("{} {}: the graph has no unknown dim of this name", option, name), "dim_option",
                      names.empty() ? "all sizes of this graph are known"
                                    : fmt::format("{}its unknown dims are {}", spaced(did_you_mean(name, names)),
                                                  fmt::join(names, ", ")));
}

/// Infers dims from the sizes of a tensor where they occur alone.
void learn_dims(const Shape& shape, const std::vector<std::int64_t>& sizes, DimBindings& dims) {
  for (int i = 0; i < shape.rank() && i < static_cast<int>(sizes.size()); ++i)
    if (const auto names = shape[i].unknowns(); names.size() == 1 && shape[i] == Dim(names[0]))
      dims.emplace(names[0], sizes[i]);
}

/// Sets every other dim to a different small prime. Dims that a check requires to be equal get the same size.
void choose_dims(const ir::Graph& graph, DimBindings& dims) {
  constexpr std::int64_t primes[] = {3, 5, 2, 7, 11, 13};
  std::size_t next = 0;
  for (const ir::ValueId id : graph.arguments())
    for (const Dim& dim : graph[id].type.shape)
      for (const std::string& name : dim.unknowns()) {
        if (dims.count(name)) continue;
        for (const ir::DimCheck& check : graph.checks) {
          if (check.relation != ir::DimCheck::Relation::equal) continue;
          for (const auto& [side, other] : {std::pair(check.left, check.right), std::pair(check.right, check.left)}) {
            if (dims.count(name) || side != Dim(name)) continue;
            if (other.value())
              dims[name] = *other.value();
            else if (const auto names = other.unknowns();
                     names.size() == 1 && other == Dim(names[0]) && dims.count(names[0]))
              dims[name] = dims[names[0]];
          }
        }
        if (!dims.count(name)) dims[name] = primes[next++ % std::size(primes)];
      }
}

std::optional<RowChunks> parse_chunks(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "off") return RowChunks{.on = false};
  RowChunks chunks{.least_rows = 0, .least_saved = 0};
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, chunks.least_rows).ptr != end || chunks.least_rows < 1)
    throw UserError(fmt::format("--chunk-rows {} is not a number of rows", text), "chunk_rows",
                    "give auto, off, or the minimum number of rows per chunk, such as 1024");
  return chunks;
}

/// Uses the weights that the graph has. Returns whether there are any.
bool take_weights(const ir::Graph& graph, const Parameters& weights, Tensors& tensors) {
  bool useful = false;
  for (const ir::ValueId id : graph.arguments()) {
    const std::string& name = graph[id].name;
    if (!weights.contains(name)) continue;
    useful = true;
    tensors.insert_or_assign(name, weights.get(name));
  }
  return useful;
}

/// Uses the weights of a model directory, an ONNX or a .pt2 file, mapped from its files.
void take_weights_of(const ir::Graph& graph, const std::string& folder, Tensors& tensors) {
  if (!take_weights(graph, weights_of(folder), tensors))
    throw UserError(fmt::format("{} has no parameter of graph @{}", folder, graph.name), "argument_unknown",
                    "give the model that the graph was written from");
}

std::string missing_text(const ir::Graph& graph, const Tensors& tensors) {
  std::vector<std::string> missing;
  for (const ir::ValueId id : graph.arguments())
    if (!tensors.count(graph[id].name)) missing.push_back(graph[id].name + " " + graph[id].type.to_string());
  constexpr std::size_t most = 6;
  const std::size_t count = missing.size();
  if (count > most) missing.resize(most);
  return fmt::format("{}{}", fmt::join(missing, ", "), count > most ? fmt::format(" and {} more", count - most) : "");
}

}  // namespace

void add_argument_options(CLI::App& command, ArgumentOptions& options) {
  command
      .add_option(
          "-i,--input", options.files,
          "Arguments by name, from a .safetensors, .npz, ONNX or .pt2 file, or a model directory (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--dim", options.dims, "Size of a dim, as NAME=SIZE (repeatable)")
      ->allow_extra_args(false)
      ->delimiter(',');
  command.add_flag("--random", options.random, "Generate the arguments that no file contains");
  seed(command.add_option("--seed", options.seed, "Seed of --random"))->capture_default_str();
}

void add_chunk_option(CLI::App& command, std::optional<RowChunks>& chunks) {
  command.add_option_function<std::string>(
      "--chunk-rows", [&chunks](const std::string& text) { chunks = parse_chunks(text); },
      "Minimum rows per chunk of large matmuls whose result is only reduced along columns, such as logits; off, or "
      "auto to chunk where it saves memory (default: auto)");
}

DimBindings sizes_for_chunks(const LowerOptions& options, const DimBindings& sizes) {
  return options.chunks && options.chunks->on ? sizes : DimBindings();
}

void require_chunk_sizes(const LowerOptions& options, const ir::Graph& graph, const DimBindings& sizes,
                         std::string_view dim_option) {
  if (sizes_for_chunks(options, {{"any", 1}}).empty()) return;
  const std::vector<std::string> unknown = ir::unbound_dims(graph, sizes);
  if (!unknown.empty())
    throw UserError(fmt::format("--chunk-rows {} splits products of known sizes, and {} of @{} {} unknown",
                                options.chunks->least_rows, fmt::join(unknown, ", "), graph.name,
                                unknown.size() == 1 ? "is" : "are"),
                    "chunk_rows", fmt::format("give their sizes, such as {} {}=64", dim_option, unknown[0]));
}

void add_lower_options(CLI::App& command, LowerOptions& options) {
  add_chunk_option(command, options.chunks);
  CLI::Option* required = command.add_flag_callback(
      "--require-fused", [&options] { options.attention = AttentionFusion::required; },
      "Fail if an attention is not fused");
  command
      .add_flag_callback(
          "--no-fused-attention", [&options] { options.attention = AttentionFusion::off; },
          "Run the matmuls and the softmax of attentions as separate kernels")
      ->excludes(required);
  command.add_flag_callback(
      "--no-joined-launches", [&options] { options.join_launches = false; },
      "On a GPU, launch each kernel on its own instead of small ones as phases of one kernel");
}

DimBindings parse_dims(const std::vector<std::string>& options, std::string_view name) {
  DimBindings dims;
  for (const std::string& option : options) {
    const auto equals = option.find('=');
    std::int64_t size = -1;
    const char* end = option.data() + option.size();
    const bool number =
        equals != std::string::npos && std::from_chars(option.data() + equals + 1, end, size).ptr == end && size >= 0;
    if (!number)
      throw UserError(fmt::format("{} {} is not of the form NAME=SIZE", name, option), "dim_option",
                      fmt::format("give a name and a size, such as {} n_seq=16", name));
    const auto [known, is_new] = dims.try_emplace(option.substr(0, equals), size);
    if (!is_new && known->second != size)
      throw UserError(fmt::format("{} gives {} two sizes, {} and {}", name, known->first, known->second, size),
                      "dim_option", "give each dim one size");
  }
  return dims;
}

DimBindings given_dims(const ir::Graph& graph, const std::vector<std::string>& options, std::string_view name) {
  DimBindings dims = parse_dims(options, name);
  check_dim_names(graph, dims, name);
  return dims;
}

DimBindings bound_dims(const ir::Graph& graph, const Arguments& arguments) {
  std::map<std::string, ir::ArgumentShape> shapes;
  for (const auto& [name, tensor] : arguments.tensors) shapes[name] = {tensor.dtype(), tensor.shape()};
  return ir::bind_dims(graph, shapes, arguments.dims);
}

Arguments load_arguments(const ir::Graph& graph, const ArgumentOptions& options, bool cast,
                         const Parameters& weights) {
  Arguments arguments{.tensors = {}, .dims = given_dims(graph, options.dims)};
  take_weights(graph, weights, arguments.tensors);
  for (const std::string& path : options.files) {
    if (has_weights(path)) {
      take_weights_of(graph, path, arguments.tensors);
      continue;
    }
    const TensorFile file = TensorFile::open(path);
    bool useful = false;
    for (const ir::ValueId id : graph.arguments()) {
      const ir::Node& node = graph[id];
      if (!file.contains(node.name)) continue;
      useful = true;
      HostTensor tensor = file.tensor(node.name);
      if (cast && is_float(tensor.dtype()) && is_float(node.type.dtype)) tensor = tensor.cast(node.type.dtype);
      arguments.tensors.insert_or_assign(node.name, std::move(tensor));
    }
    if (!useful)
      throw UserError(fmt::format("{} has no argument of graph @{}", path, graph.name), "argument_unknown",
                      fmt::format("the graph takes {}", missing_text(graph, {})));
  }
  if (arguments.tensors.size() == graph.arguments().size()) return arguments;
  if (!options.random)
    throw UserError(fmt::format("no value for {}", missing_text(graph, arguments.tensors)), "argument_missing",
                    "give --input FILE.safetensors or FILE.npz, or --random to generate values");
  DimBindings dims = arguments.dims;
  for (const auto& [name, tensor] : arguments.tensors)
    learn_dims(graph[graph.find_argument(name)].type.shape, tensor.shape(), dims);
  choose_dims(graph, dims);
  for (const ir::ValueId id : graph.arguments())
    if (!arguments.tensors.count(graph[id].name))
      arguments.tensors.emplace(graph[id].name, ir::made_up_value(graph, id, dims, options.seed));
  return arguments;
}

}  // namespace lathe::tools
