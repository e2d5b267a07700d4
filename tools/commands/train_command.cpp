#include <CLI/CLI.hpp>

#include "frontend/decode/decoding.h"
#include "runtime/cache/disk_cache.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/options/arguments.h"
#include "tools/options/division.h"
#include "tools/options/memory_budget.h"
#include "tools/options/number_option.h"
#include "tools/options/optimizer_options.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"
#include "tools/streams.h"
#include "tools/train/step_options.h"
#include "tools/train/train_output.h"

namespace lathe::tools {

namespace {

struct TrainOptions {
  TextTrainingOptions training = {.sources = "."};
  TextSampleOptions sample = {};  ///< of the text that is printed at the end
  StepOptions step = {};
  bool print_graph = false;  ///< print the model's IR before the first step
};

/// Prints a sample of the trained model.
void print_sample(TextTraining& training, const TextSampleOptions& sample) {
  print("\n--- a sample, temperature {:.1f} ---\n{}", sample.sampling.temperature,
        sample.prompt == "\n" ? "" : sample.prompt);
  training.sample(sample, [](std::string_view piece) { print_text(piece); });
  print("\n");
  if (StopSignals::received() != 0) throw Stopped(StopSignals::received());
}

void train(TrainOptions options) {
  check(options.sample.sampling);  // before anything is computed
  if (!options.training.text.empty()) options.training.sources.clear();
  DiskCache cache(cache_folder());
  const auto ranks = start_processes(options.step.division, options.step.processes, "train");
  run_processes(ranks, [&] {
    TrainOutput output(options.training, options.print_graph);
    options.training.compile = compile_options(options.step, ranks, cache.enabled() ? &cache : nullptr);
    options.training.stop = [&] { return output.is_to_stop(); };
    options.training.observer = &output;
    options.training.advice = divergence_advice;
    TextTraining training(options.training);
    const TrainingResult result = training.run();
    const bool is_first = !ranks || ranks->rank() == 0;
    if (result.stopped) output.end_stopped(result.steps, is_first);
    if (!is_first) return;
    output.finish(result);
    if (options.sample.length > 0) print_sample(training, options.sample);
  });
}

void add_text_sample_options(CLI::App& command, TextSampleOptions& sample) {
  const auto number = [&](const char* name, auto& value, const char* doc) {
    return command.add_option(name, value, doc)->capture_default_str();
  };
  between(number("--sample", sample.length, "Characters or tokens of the sample after training; 0 prints none"), 0,
          most_steps);
  command.add_option("--prompt", sample.prompt, "Start of the sample (default: a line break)");
  not_negative(number("--temperature", sample.sampling.temperature, "Sampling temperature; 0 is greedy"));
  at_least(number("--top-k", sample.sampling.top_k, "Sample from the k most likely characters or tokens; 0 uses all"),
           0);
}

/// Adds the options of the text, its tokens and the output folder.
void add_text_options(CLI::App& command, TextTrainingOptions& s) {
  CLI::Option* text =
      command.add_option("--text", s.text, "Text file to train on (default: the source files in --sources)");
  command.add_option("--sources", s.sources, "Folder of source files to train on")
      ->capture_default_str()
      ->excludes(text);
  command.add_option(
      "--tokenizer", s.tokenizer,
      "A tokenizer.json file, or bpe:SIZE to train one on the text (default: each character is a token)");
  command.add_option("-o,--output", s.output, "Output folder for checkpoints, loss.svg and the trained model")
      ->capture_default_str();
  command.add_option("--model", s.model.kind, "Model architecture: llama or gpt")->capture_default_str();
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  TextTrainingOptions* const s = &options->training;
  auto precision = std::make_shared<std::string>("f32");
  CLI::App* command = app.add_subcommand("train", "Train a language model on text");
  add_text_options(*command, *s);
  const auto number = [&](const char* name, auto& value, const char* doc) {
    return command->add_option(name, value, doc)->capture_default_str();
  };
  between(number("--steps", s->steps, "Training steps"), 1, most_steps);
  between(number("--batch", s->batch, "Sequences per step"), 1, most_size);
  between(number("--context", s->model.context, "Characters or tokens per sequence"), 1, most_size);
  between(number("--layers", s->model.layers, "Number of decoder layers"), 1, 1000);
  between(number("--d-model", s->model.d_model, "Model width"), 1, most_size);
  between(number("--heads", s->model.heads, "Number of attention heads"), 1, most_size);
  real_between(number("--dropout", s->model.dropout, "Dropout probability, gpt only"), 0, 0.99);
  add_precision_option(*command, *precision);
  add_optimizer_options(*command, s->optimizer, {.lr = "0.001", .weight_decay = "0.1", .beta2 = "0.99"});
  seed(number("--seed", s->seed, "Seed of parameters, batches and dropout"));
  between(number("--evaluate-every", s->evaluate_every, "Steps between validations"), 1, most_steps);
  between(number("--validation-batches", s->validation_batches,
                 "Batches of the validation after the last step; 0 uses the whole validation text"),
          0, most_steps);
  between(number("--save-every", s->save_every, "Steps between checkpoints"), 1, most_steps);
  add_text_sample_options(*command, options->sample);
  add_target_option(*command, options->step.target);
  add_threads_option(*command, options->step.threads);
  add_lower_options(*command, options->step.lower);
  add_memory_budget(*command, options->step.memory_budget);
  add_tune(*command, options->step.tune);
  command->add_flag("--find-nan", options->step.find_nan,
                    "Check the results of each step, and name the op that makes the first NaN or infinity");
  add_process_options(*command, add_division(*command, options->step.division), options->step.processes);
  command->add_flag("--print-graph", options->print_graph, "Print the model's IR before the first step");
  command->add_flag("--fresh", s->fresh, "Ignore existing checkpoints and start from scratch");
  command->footer(
      "Resumes from the newest checkpoint in --output. Ctrl-C stops after the current step and saves.\n"
      "With --mesh, each step runs on several processes started by mpirun (docs/distributed.md).\n"
      "Examples:\n"
      "  lathe train --text shakespeare.txt -o run\n"
      "  mpirun -n 8 lathe train --text shakespeare.txt --mesh data=4,model=2 --split B:data,h:model,d_ff:model");
  command->callback([options, precision] {
    options->training.model.precision = *parse_dtype(*precision);
    train(*options);
  });
}

}  // namespace lathe::tools
