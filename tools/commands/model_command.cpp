#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/models/attentions.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "ir/tensor/text/printer.h"
#include "models/finetune/step_graph.h"
#include "models/import/import.h"
#include "models/pretrained/lora/adapted_model.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tools/commands/commands.h"
#include "tools/commands/imported_model.h"
#include "tools/effective_options.h"
#include "tools/inputs/files.h"
#include "tools/options/adapter_options.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/pretrained/graph_part.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/train/written_step.h"

namespace lathe::tools {

namespace {

struct ModelOptions {
  std::string name, output = "-", precision = "f32";
  int layers = 2;
  std::int64_t d_model = 0, heads = 0, vocab = 0, context = 0, batch = 0;
  double dropout = 0;
  bool loss = false, step = false;
  WrittenStep written;
  std::string loss_of;                                                     ///< of a file: KIND:OUTPUT,TARGET
  std::vector<std::string> frozen;                                         ///< of a file
  std::string part = "logits", dtype = "f32", weights = "stored", inputs;  ///< for a directory
  std::filesystem::path adapter;
  std::optional<std::string> lora;  ///< for the step of a directory
  GraphSource source;               ///< of a file
  std::string values;               ///< file for the initial values of a built-in model
  std::uint64_t seed = 0;
};

/// Returns a dim with the given size, or the model's default if none is given.
Dim or_default(std::int64_t given, const Dim& fallback) { return given > 0 ? Dim(fallback.name(), given) : fallback; }

/// Declares the outputs of a language model. If the loss is requested, returns it; it needs T+1 tokens.
template <class Model>
std::optional<Tensor> language_model(Graph& g, const ModelOptions& options, const Model& model) {
  const bool loss = options.loss || options.step;
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), loss ? Dim("T") + 1 : Dim("T")});
  if (loss) return model.loss(tokens);
  g.output("logits", model.logits(tokens));
  return std::nullopt;
}

std::optional<Tensor> gpt(Graph& g, const ModelOptions& options) {
  models::GptConfig config;
  config.layers = options.layers;
  config.vocab = or_default(options.vocab, config.vocab);
  config.context = or_default(options.context, config.context);
  config.d_model = or_default(options.d_model, config.d_model);
  config.h = or_default(options.heads, config.h);
  config.dropout = options.dropout;
  return language_model(g, options, models::Gpt(g, config));
}

std::optional<Tensor> llama(Graph& g, const ModelOptions& options) {
  models::LlamaConfig config;
  config.layers = options.layers;
  config.vocab = or_default(options.vocab, config.vocab);
  config.d_model = or_default(options.d_model, config.d_model);
  config.h = or_default(options.heads, config.h);
  if (options.heads > 0) config.kv_heads = Dim("kv_heads", options.heads);
  return language_model(g, options, models::Llama(g, config));
}

std::optional<Tensor> encoder_decoder(Graph& g, const ModelOptions& options) {
  models::EncoderDecoderConfig config;
  config.layers = options.layers;
  config.src_vocab = or_default(options.vocab, config.src_vocab);
  config.tgt_vocab = or_default(options.vocab, config.tgt_vocab);
  config.d_model = or_default(options.d_model, config.d_model);
  config.h = or_default(options.heads, config.h);
  config.dropout = options.dropout;
  const models::EncoderDecoder model(g, config);
  const bool loss = options.loss || options.step;
  const Tensor src = g.input("src", i64, {Dim("B"), Dim("S")});
  const Tensor tgt = g.input("tgt", i64, {Dim("B"), loss ? Dim("T") + 1 : Dim("T")});
  if (loss) return model.loss(src, tgt);
  g.output("logits", model.logits(src, tgt));
  return std::nullopt;
}

using Build = std::function<std::optional<Tensor>(Graph&, const ModelOptions&)>;
struct Entry {
  std::string_view doc;
  Build build;
  std::set<std::string> sizes = {};  ///< the options of add_size_options() that it has
};

/// A single attention. It declares its own outputs.
template <class Function>
Build attention(Function&& function) {
  return [function](Graph& g, const ModelOptions&) -> std::optional<Tensor> {
    function(g);
    return std::nullopt;
  };
}

const std::map<std::string, Entry>& catalogue() {
  static const std::map<std::string, Entry> entries{
      {"gpt",
       {"decoder-only Transformer like GPT-2",
        gpt,
        {"--layers", "--d-model", "--heads", "--vocab", "--context", "--dropout"}}},
      {"llama", {"decoder-only Transformer like Llama", llama, {"--layers", "--d-model", "--heads", "--vocab"}}},
      {"encoder-decoder",
       {"the original Transformer (2017)",
        encoder_decoder,
        {"--layers", "--d-model", "--heads", "--vocab", "--dropout"}}},
      {"walkthrough",
       {"multi-head attention step by step", attention([](Graph& g) { models::attention_walkthrough(g); })}},
      {"llama-attention", {"attention with grouped heads and rotary embedding", attention([](Graph& g) {
                             models::llama_attention(g);
                           })}},
      {"einsum-attention",
       {"attention written with einsum", attention([](Graph& g) { models::einsum_attention(g); })}},
      {"attention-forms",
       {"self, multi-head, causal and cross attention", attention([](Graph& g) { models::attention_forms(g); })}}};
  return entries;
}

/// Returns the training step of `lathe finetune` on padded rows. Trains all weights, or only an adapter.
ir::Graph folder_step(const ModelOptions& options) {
  const pretrained::AdaptedFolders folders = pretrained::find_adapted(options.name, options.adapter);
  require_one_adapter(options.lora, folders);
  pretrained::AdaptedModel loaded = pretrained::load_adapted<pretrained::CausalLm>(folders);
  if (options.lora) pretrained::add_lora(loaded.model, parse_lora(*options.lora), 0);
  const pretrained::CausalLm& model = *loaded.model.model;
  keep_trained_in_f32(model);
  const auto [optimizer, training] = options.written.build(true, *parse_dtype(options.precision));
  return step_graphs(model, {.B = Dim("B"), .T = Dim("T")}, optimizer, training, *parse_dtype(options.dtype)).step;
}

void write_folder(const ModelOptions& options) {
  if (options.step) return write_text(options.output, ir::print(folder_step(options)));
  const GraphPart part = options.loss ? GraphPart::loss : graph_parts().at(options.part);
  const ir::Graph graph = pretrained_graph(options.name, part,
                                           {.dtype = *parse_dtype(options.dtype),
                                            .batch = options.batch > 0 ? Dim("B", options.batch) : Dim("B"),
                                            .adapter = options.adapter,
                                            .load = {.weights = weight_format(options.weights)},
                                            .inputs = parse_inputs(options.inputs)});
  write_text(options.output, ir::print(with_precision(graph, options.precision)));
}

/// A folder that has the name of a built-in model only takes precedence if it contains a model.
bool names_folder(const std::string& name) {
  std::error_code ignored;
  const auto has = [&](const char* file) {
    return std::filesystem::exists(std::filesystem::path(name) / file, ignored);
  };
  return is_model_folder(name) && (!catalogue().contains(name) || has("config.json") || has("adapter_config.json"));
}

/// Returns whether a path names a file with IR text; "-" is standard input.
bool is_text(const std::string& path) { return path == "-" || path.ends_with(".lathe"); }

/// Throws UserError [usage] for an option that has no effect on a file, a directory or a built-in model.
void require_effects(const CLI::App& command, const ModelOptions& options) {
  std::set<std::string> known{"NAME", "--output", "--precision", "--loss", "--step"},
      of_steps = options.written.names();
  std::string model;
  const bool is_file = is_text(options.name) || importing::is_importable(options.name);
  if (is_file) {
    model = fmt::format("{}, {}", options.name, is_text(options.name) ? "IR text" : "which is imported as it is");
    known.insert({"--fix-dim", is_text(options.name) ? "--ops" : "--values"});
    if (options.step && !is_text(options.name)) known.insert("--seed");
    of_steps.insert("--freeze");
  } else if (names_folder(options.name)) {
    model = fmt::format("{}, a model directory", options.name);
    known.insert({"--adapter", "--dtype"});
    if (!options.step) known.insert({"--part", "--inputs", "--batch", "--weights"});
    of_steps.insert("--lora");
  } else {
    model = fmt::format("{}, a built-in model", options.name);
    known.insert({"--values", "--seed"});
    const Entry& entry = catalogue().at(options.name);
    known.insert(entry.sizes.begin(), entry.sizes.end());
  }
  if (options.step)
    known.merge(of_steps);
  else
    refuse_options(command, of_steps, model, "leave it out, or add --step if it is for training");
  require_effective(command, known, model);
  if (is_file) {
    if ((options.step || options.loss) && options.loss_of.empty())
      throw UserError(fmt::format("no loss is given for {}", options.name), "usage",
                      "say which output to compare with which input, such as --loss cross_entropy:logits,labels, or "
                      "which output is the loss, such as --loss output:loss");
    return;
  }
  if (!options.loss_of.empty())
    throw UserError(fmt::format("--loss {}: {} has a loss of its own", options.loss_of, options.name), "usage",
                    "write --loss alone, after the name of the model");
}

/// Writes the graph of a file: IR text, ONNX or .pt2. Of the last two also the values of its parameters and states,
/// on request.
void write_file(const ModelOptions& options) {
  importing::ImportedGraph imported =
      is_text(options.name) ? importing::as_imported(load_graph(options.name, options.source))
                            : importing::import_graph(options.name, {.sizes = fixed_dims(options.source.sizes)});
  std::optional<WrittenStep::Built> step;
  if (options.step) step = options.written.build(false, *parse_dtype(options.precision));
  const ir::Graph graph =
      imported_model(imported, {.loss = options.loss ? std::optional(options.loss_of) : std::nullopt,
                                .step = step,
                                .frozen = options.frozen,
                                .precision = options.precision});
  write_text(options.output, ir::print(graph));
  if (options.values.empty()) return;
  for (const auto& [name, value] : initial_states(graph, options.seed))
    if (!imported.parameters.contains(name)) imported.parameters.set(name, value);
  imported.parameters.save(options.values);
}

void run(const ModelOptions& options) {
  if (is_text(options.name) || importing::is_importable(options.name)) return write_file(options);
  if (names_folder(options.name)) {
    write_folder(options);
    return note_ignored_keys(options.name, options.adapter);
  }
  Graph g(options.step ? options.name + "_step" : options.name);
  const std::optional<Tensor> loss = catalogue().at(options.name).build(g, options);
  if ((options.loss || options.step) && !loss)
    throw UserError(fmt::format("{} has no loss", options.name), "usage", "leave out --loss and --step");
  if (options.loss && !options.step) g.output("loss", *loss);
  const auto step = [&] {
    const auto [optimizer, training] = options.written.build(false, *parse_dtype(options.precision));
    return training_step(g, *loss, optimizer, training);
  };
  const ir::Graph graph = options.step ? step() : with_precision(g.finish(), options.precision);
  write_text(options.output, ir::print(graph));
  if (!options.values.empty())
    write_safetensors(options.values, initial_values(graph, g.initializers(), options.seed));
}

void add_training_options(CLI::App& command, ModelOptions& options) {
  options.written.add_to(command);
  CLI::Option* const values = command.add_option("--values", options.values,
                                                 "Built-in model, ONNX or .pt2 file: also write the values of its "
                                                 "parameters and states to this .safetensors file (default: none)");
  seed(command.add_option("--seed", options.seed, "Seed of --values"))->capture_default_str()->needs(values);
  command
      .add_option("--freeze", options.frozen,
                  "With --step and a file: parameters that are not trained, by a part of their names "
                  "(repeatable; default: none)")
      ->type_name("TEXT");
}

/// Adds the name of a built-in model, or the path of a directory or file.
void add_name(CLI::App& command, std::string& model, const std::vector<std::string>& names) {
  command
      .add_option("NAME", model, "Built-in model (see below), model or adapter directory, IR text, ONNX or .pt2 file")
      ->required()
      ->check(CLI::Validator(
          [names](std::string& name) {
            const bool is_known = is_text(name) || importing::is_importable(name) || names_folder(name) ||
                                  std::ranges::find(names, name) != names.end();
            return is_known
                       ? ""
                       : fmt::format(
                             "{} is neither a built-in model ({}), nor a directory with a model, nor a path that "
                             "ends with .lathe, .onnx or .pt2",
                             name, fmt::join(names, ", "));
          },
          "{" + fmt::format("{}", fmt::join(names, ",")) + "}, DIR, FILE.lathe, FILE.onnx or FILE.pt2"));
}

CLI::Option* add_loss_option(CLI::App& command, std::string& loss) {
  return command
      .add_option(
          "--loss", loss,
          "Output the loss instead of the logits. A file needs the kind of loss, the output and the input with its "
          "targets; kinds: cross_entropy, next_token, mse, binary_cross_entropy, and output for an output that is "
          "the "
          "loss, without a target")
      ->expected(0, 1)
      ->type_name("[KIND:OUTPUT[,TARGET]]");
}

/// Adds the sizes of built-in models.
void add_size_options(CLI::App& command, ModelOptions& options) {
  between(command.add_option("--layers", options.layers, "Number of layers, of each stack"), 1, 1000)
      ->capture_default_str();
  between(command.add_option("--d-model", options.d_model, "Model width (default: the model's)"), 1, most_size);
  between(command.add_option("--heads", options.heads, "Number of attention heads (default: the model's)"), 1,
          most_size);
  between(command.add_option("--vocab", options.vocab, "Vocabulary size in tokens (default: the model's)"), 1,
          most_size);
  between(
      command.add_option("--context", options.context, "Maximum sequence length, gpt only (default: the model's)"), 1,
      most_size);
  real_between(command.add_option("--dropout", options.dropout, "Dropout probability (default: the model's)"), 0, 1);
}

}  // namespace

void add_model(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand(
      "model",
      "Write a built-in model, or the model in a directory or a file, as IR text: its loss or training step too");
  std::vector<std::string> names;
  std::string footer = "Built-in models:\n";
  for (const auto& [name, entry] : catalogue()) {
    names.push_back(name);
    footer += fmt::format("  {:<18}{}\n", name, entry.doc);
  }
  add_name(*command, options->name, names);
  std::vector<std::string> parts;
  for (const auto& [part, value] : graph_parts()) parts.push_back(part);
  CLI::Option* const part =
      command->add_option("--part", options->part,
                          "With a directory: part of the model, such as its logits, its loss or a generation step");
  part->check(CLI::IsMember(parts))->capture_default_str();
  command->add_option("--dtype", options->dtype, "With a directory: compute dtype; weights keep their stored dtype")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}))
      ->capture_default_str();
  CLI::Option* const inputs = command->add_option(
      "--inputs", options->inputs,
      "With a directory: more inputs of logits, loss, states and pooled, as a list of mask, positions and types");
  CLI::Option* const batch = command->add_option("--batch", options->batch,
                                                 "With a directory: number of sequences, fixed in the graph; small "
                                                 "numbers use kernels for few rows (default: late-bound)");
  between(batch, 1, most_size);
  CLI::Option* const weights = add_weights_option(*command, options->weights);
  add_adapter_option(*command, options->adapter);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  add_size_options(*command, *options);
  CLI::Option* const loss = add_loss_option(*command, options->loss_of);
  CLI::Option* const step = command->add_flag(
      "--step", options->step, "Write the whole training step: forward, backward, update by the optimizer");
  step->excludes(part)->excludes(weights)->excludes(batch)->excludes(inputs);
  add_source_options(*command, options->source);
  add_lora_option(*command, options->lora)->needs(step);
  add_precision_option(*command, options->precision);
  add_training_options(*command, *options);
  command->footer(
      footer +
      "Examples:\n"
      "  lathe model gpt --layers 12 --step -o step.lathe\n"
      "  lathe model Llama-3.2-1B --part step --batch 1 -o token.lathe\n"
      "  lathe model model.onnx -o model.lathe --values weights.safetensors\n"
      "  lathe model model.pt2 --loss cross_entropy:output,labels --step -o step.lathe --values w.safetensors\n"
      "  lathe model encoder.lathe --loss mse:states,targets --step -o step.lathe\n"
      "  lathe model bert-base-uncased --part states --inputs mask,positions -o states.lathe\n"
      "  lathe model Llama-3.2-1B --step --lora r=16 -o step.lathe");
  command->callback([options, command, loss] {
    options->loss = loss->count() > 0;
    require_effects(*command, *options);
    run(*options);
  });
}

}  // namespace lathe::tools
