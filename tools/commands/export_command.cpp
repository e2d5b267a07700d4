#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <set>

#include "ir/support/error.h"
#include "models/export/export.h"
#include "passes/transforms/evaluation.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/files/tensors/tensor_file.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/pretrained/graph_part.h"
#include "tools/pretrained/ignored_keys.h"

namespace lathe::tools {

namespace {

struct ExportOptions {
  std::string file;
  std::filesystem::path output;
  int opset = 18;
  bool external = false, evaluation = false;
  std::vector<std::string> values, dims;
  GraphSource source;
  std::string part = "logits", dtype = "f32", inputs;  ///< for a directory
};

LoadedModel model_of(const ExportOptions& options) {
  if (!is_model_folder(options.file)) return load_model(options.file, options.source);
  ir::Graph graph = pretrained_graph(options.file, graph_parts().at(options.part),
                                     {.dtype = *parse_dtype(options.dtype), .inputs = parse_inputs(options.inputs)});
  return {std::move(graph), pretrained_weights(options.file)};
}

/// Sets the values of files, of which later ones take precedence.
void set_values(Parameters& values, const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    if (has_weights(path)) {
      const Parameters more = weights_of(path);
      for (const std::string& name : more.names()) values.set(name, more.get(name));
      continue;
    }
    const TensorFile file = TensorFile::open(path);
    for (const std::string& name : file.names()) values.set(name, file.mapped(name));
  }
}

void run(const ExportOptions& options) {
  if (options.output.extension() != ".onnx")
    throw UserError(fmt::format("-o {}: this is no .onnx file", options.output.string()), "usage",
                    "graphs are exported as ONNX files: give a name that ends with .onnx");
  auto [graph, values] = model_of(options);
  set_values(values, options.values);
  if (options.evaluation) graph = ir::evaluation(graph);
  if (!options.dims.empty()) graph = ir::with_sizes(graph, given_dims(graph, options.dims));
  exporting::OnnxOptions how{.opset = options.opset};
  if (options.external) how.most_bytes = 0;
  exporting::write_onnx(graph, values, options.output, how);
  if (is_model_folder(options.file)) note_ignored_keys(options.file);
}

/// Throws UserError [usage] for an option that has no effect on this kind of file.
void require_effects(const CLI::App& command, const ExportOptions& options) {
  const bool is_folder = is_model_folder(options.file);
  if (!is_folder)
    return refuse_options(command, {"--part", "--dtype", "--inputs"},
                          fmt::format("{}, which is one graph", options.file),
                          "leave it out, or give a model directory");
  refuse_options(command, {"--ops"}, options.file, "leave it out: only IR text has ops of libraries");
  refuse_options(command, {"--fix-dim"}, options.file, "give --dim instead");
}

void add_folder_options(CLI::App& command, ExportOptions& options) {
  std::vector<std::string> parts;
  for (const auto& [part, value] : graph_parts()) parts.push_back(part);
  command.add_option("--part", options.part, "With a directory: part of the model, such as its logits or states")
      ->check(CLI::IsMember(parts))
      ->capture_default_str();
  command.add_option("--dtype", options.dtype, "With a directory: compute dtype; weights keep their stored dtype")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}))
      ->capture_default_str();
  command.add_option("--inputs", options.inputs,
                     "With a directory: more inputs of the part, as a list of mask, positions and types");
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a graph and its weights as an ONNX file");
  command
      ->add_option("FILE", options->file,
                   "IR text file, model directory, ONNX or .pt2 file; the last three have weights")
      ->required();
  command->add_option("-o,--output", options->output, "Output file, .onnx")->required();
  between(command->add_option("--opset", options->opset,
                              "Version of the ONNX ops; from 23 on, attention and RMS norms are single ops"),
          18, 23)
      ->capture_default_str();
  command
      ->add_option("--input", options->values,
                   "Values of parameters and states: .safetensors or .npz file, model directory, ONNX or .pt2 file "
                   "(repeatable; later ones take precedence)")
      ->type_name("FILE");
  command->add_option("--dim", options->dims, "Size that the file fixes, as name=size (repeatable)");
  command->add_flag("--evaluation", options->evaluation, "Export the graph without dropout");
  command->add_flag("--external-data", options->external,
                    "Write the weights to a second file, as for models of more than 2 GiB");
  add_source_options(*command, options->source);
  add_folder_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  lathe export gpt2 -o gpt2.onnx\n"
      "  lathe export Qwen3-0.6B -o qwen.onnx --opset 23 --external-data\n"
      "  lathe export bert-base-uncased --part states --inputs mask -o bert.onnx\n"
      "  lathe export mha.lathe --input weights.safetensors -o mha.onnx");
  command->callback([options, command] {
    require_effects(*command, *options);
    run(*options);
  });
}

}  // namespace lathe::tools
