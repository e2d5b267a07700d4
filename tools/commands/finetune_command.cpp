#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <set>

#include "ir/support/error.h"
#include "models/finetune/imported/imported_tuning.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/files/paths.h"
#include "tools/commands/commands.h"
#include "tools/effective_options.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/adapter_options.h"
#include "tools/options/division.h"
#include "tools/options/memory_budget.h"
#include "tools/options/number_option.h"
#include "tools/options/optimizer_options.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/train/fine_tune_output.h"
#include "tools/train/imported_tune_output.h"
#include "tools/train/step_options.h"

namespace lathe::tools {

namespace {

struct FineTuneCommand {
  FineTuneOptions tuning = {};
  std::optional<std::string> loss = {};  ///< value of --loss, for a graph of another system
  std::vector<std::string> frozen = {};  ///< values of --freeze
  std::vector<std::string> sizes = {};   ///< values of --fix-dim
  std::optional<std::string> lora = {};  ///< value of --lora
  std::string valid = {};                ///< value of --valid: a file or a fraction
  StepOptions step = {};
};

void add_data_options(CLI::App& command, FineTuneOptions& s) {
  CLI::Option_group* data = command.add_option_group("data", "Training data");
  data->add_option(
      "--data", s.data,
      "JSONL file; each line has text, prompt and completion, or messages. For an ONNX or a .pt2 file: a "
      ".safetensors or .npz file with a tensor for each input, whose first dim counts the examples");
  data->add_option("--text", s.text, "Plain text file; all of its tokens are trained on");
  data->add_option("--sources", s.sources, "Folder; all of its source files are trained on")
      ->check(CLI::ExistingDirectory);
  data->require_option(1);
}

/// Options of ONNX and .pt2 files.
void add_loss_options(CLI::App& command, FineTuneCommand& options) {
  command.add_option("--loss", options.loss,
                     "With a file: loss of an output and an input, KIND:OUTPUT,TARGET, such as "
                     "cross_entropy:logits,labels, or output:OUTPUT for an output that is the loss (docs/onnx.md)");
  command
      .add_option("--freeze", options.frozen,
                  "With a file: do not train the parameters with this text in their names (repeatable)")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_fix_dim_option(command, options.sizes);
}

void add_sample_options(CLI::App& command, SampleOptions& samples) {
  CLI::Option* prompt =
      command
          .add_option("--sample-prompt", samples.prompts,
                      "Prompt from which to generate a sample every --sample-every steps (repeatable)")
          ->type_size(1)
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  between(command.add_option("--sample-every", samples.every, "Steps between samples"), 1, most_steps)
      ->needs(prompt)
      ->capture_default_str();
  between(command.add_option("--sample-tokens", samples.tokens, "Maximum new tokens per sample"), 1, most_steps)
      ->needs(prompt)
      ->capture_default_str();
  command.add_flag("--sample-chat", samples.chat, "Use sample prompts as user turns of the chat template")
      ->needs(prompt);
}

/// Returns the share if `text` is a number such as "0.1" and not the name of an existing file.
std::optional<double> share_of(const std::string& text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size() || path_exists(text)) return std::nullopt;
  if (!(share > 0 && share < 1))
    throw UserError(fmt::format("--valid {} is not a fraction", text), "finetune_valid",
                    "give a number above 0 and below 1, or a file");
  return share;
}

/// Throws UserError [usage] for an option that has no effect on what is trained.
void require_effect(const CLI::App& command, bool is_imported) {
  static const std::set<std::string> for_imports{"--loss", "--freeze", "--fix-dim"},
      for_directories{"--adapter",      "--text",          "--sources",     "--lora",
                      "--accumulate",   "--context",       "--pack",        "--sample-prompt",
                      "--sample-every", "--sample-tokens", "--sample-chat", "--mesh",
                      "--split",        "--parameters",    "--watchdog",    "--mpi"};
  refuse_options(command, is_imported ? for_directories : for_imports,
                 is_imported ? "an ONNX or a .pt2 file" : "a model directory");
}

/// Trains an ONNX or a .pt2 file.
void fine_tune_imported(const FineTuneCommand& options) {
  const FineTuneOptions& from = options.tuning;
  if (!options.loss)
    throw UserError(fmt::format("no loss is given for {}", quote_path(from.model)), "usage",
                    "give --loss KIND:OUTPUT,TARGET, such as --loss cross_entropy:logits,labels, or "
                    "--loss output:OUTPUT for an output that is the loss");
  DiskCache cache(cache_folder());
  ImportedTuningOptions tuning{.file = from.model,
                               .sizes = fixed_dims(options.sizes),
                               .loss = importing::parse_loss(*options.loss),
                               .frozen = options.frozen,
                               .data = from.data,
                               .valid = from.valid,
                               .valid_share = from.valid_share,
                               .output = from.output,
                               .steps = from.steps,
                               .epochs = from.epochs,
                               .batch = from.batch,
                               .optimizer = from.optimizer,
                               .precision = from.precision,
                               .seed = from.seed,
                               .evaluate_every = from.evaluate_every,
                               .save_every = from.save_every,
                               .validation_batches = from.validation_batches,
                               .fresh = from.fresh,
                               .compile = compile_options(options.step, nullptr, cache.enabled() ? &cache : nullptr),
                               .advice = divergence_advice};
  ImportedTuneOutput output(tuning);
  tuning.stop = [&] { return output.is_to_stop(); };
  tuning.observer = &output;
  const TrainingResult result = ImportedTuning(tuning).run();
  if (result.stopped) output.end_stopped(result.steps, true);
  output.finish(result);
}

void fine_tune(FineTuneCommand options) {
  FineTuneOptions& tuning = options.tuning;
  if (const auto share = share_of(options.valid))
    tuning.valid_share = *share;
  else
    tuning.valid = options.valid;
  if (importing::is_importable(tuning.model)) return fine_tune_imported(options);
  if (options.lora) {
    require_one_adapter(options.lora, pretrained::find_adapted(tuning.model, tuning.adapter));
    tuning.lora = parse_lora(*options.lora);
  }
  DiskCache cache(cache_folder());
  const auto ranks = start_processes(options.step.division, options.step.processes, "finetune");
  run_processes(ranks, [&] {
    FineTuneOutput output(tuning);
    tuning.compile = compile_options(options.step, ranks, cache.enabled() ? &cache : nullptr);
    tuning.stop = [&] { return output.is_to_stop(); };
    tuning.observer = &output;
    tuning.advice = divergence_advice;
    const TrainingResult result = FineTuning(tuning).run();
    const bool is_first = !ranks || ranks->rank() == 0;
    if (result.stopped) output.end_stopped(result.steps, is_first);
    if (is_first) output.finish(result);
  });
}

}  // namespace

void add_finetune(CLI::App& app) {
  auto options = std::make_shared<FineTuneCommand>();
  FineTuneOptions* const s = &options->tuning;
  auto precision = std::make_shared<std::string>("f32");
  CLI::App* command = app.add_subcommand(
      "finetune", "Train a Hugging Face model, an adapter on it, an ONNX or a .pt2 file on examples");
  command->add_option("DIR", s->model, "Model directory, adapter directory to train further, ONNX or .pt2 file")
      ->required();
  add_adapter_option(*command, s->adapter);
  add_data_options(*command, *s);
  add_lora_option(*command, options->lora);
  add_loss_options(*command, *options);
  command->add_option("-o,--output", s->output, "Output folder for the model, the adapter or model.safetensors")
      ->capture_default_str();
  command->add_option(
      "--valid", options->valid,
      "Validation data: a file like --data, or a fraction of the training data such as 0.1 (default: none)");
  const auto number = [&](const char* name, auto& value, const char* doc) {
    return command->add_option(name, value, doc)->capture_default_str();
  };
  between(command->add_option("--steps", s->steps, "Training steps (default: from --epochs)"), 1, most_steps);
  positive(number("--epochs", s->epochs, "Passes over the training data"), 1e6);
  between(number("--batch", s->batch, "Rows per batch"), 1, most_size);
  between(number("--accumulate", s->accumulate, "Batches per training step"), 1, most_size);
  between(number("--context", s->context, "Maximum tokens per row"), 2, most_size);
  command->add_flag("--pack", s->pack, "Pack several examples into a row; they do not attend to each other");
  add_optimizer_options(*command, s->optimizer,
                        {.lr = "2e-5; for an adapter: 2e-4", .weight_decay = "0", .beta2 = "0.999"});
  add_precision_option(*command, *precision);
  seed(number("--seed", s->seed, "Seed of the order of examples, of the adapter's initial values and of dropout"));
  between(number("--eval-every", s->evaluate_every, "Steps between validations"), 1, most_steps);
  between(number("--validation-batches", s->validation_batches, "Batches per validation; 0 uses all"), 0, most_steps);
  add_sample_options(*command, s->samples);
  between(number("--save-every", s->save_every, "Steps between checkpoints"), 1, most_steps);
  add_target_option(*command, options->step.target);
  add_threads_option(*command, options->step.threads);
  add_memory_budget(*command, options->step.memory_budget);
  command->add_flag("--find-nan", options->step.find_nan,
                    "Check the results of each step, and name the op that makes the first NaN or infinity");
  add_process_options(*command, add_division(*command, options->step.division), options->step.processes);
  command->add_flag("--fresh", s->fresh, "Ignore existing checkpoints and start from scratch");
  command->footer(
      "Resumes from the newest checkpoint in --output. Ctrl-C stops after the current step and saves.\n"
      "With --mesh, each step runs on several processes started by mpirun (docs/distributed.md).\n"
      "Examples:\n"
      "  lathe finetune Qwen3-0.6B --data chats.jsonl --lora r=16,targets=q_proj:v_proj --pack -o adapter\n"
      "  lathe finetune model.onnx --loss cross_entropy:logits,labels --data train.npz -o tuned\n"
      "  mpirun -n 4 lathe finetune Qwen3-0.6B --data chats.jsonl --mesh data=4 --parameters data -o tuned");
  command->callback([command, options, precision] {
    require_effect(*command, importing::is_importable(options->tuning.model));
    options->tuning.precision = *parse_dtype(*precision);
    fine_tune(*options);
  });
}

}  // namespace lathe::tools
