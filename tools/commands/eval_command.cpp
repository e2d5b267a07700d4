#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "models/finetune/model_directory.h"
#include "models/pretrained/token_loss.h"
#include "models/text/dataset/token_batches.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/host/seconds.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/adapter_options.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct EvalOptions {
  std::filesystem::path model, adapter;
  std::string text, target = "host", precision = "f32";
  std::int64_t context = 0, stride = 0, batch = 1;
  int threads = 0;
};

constexpr std::int64_t usual_context = 1024;

std::int64_t context_of(const EvalOptions& options, const pretrained::CausalLm& model) {
  const auto longest = model.context_length();
  if (options.context == 0) return std::min(usual_context, longest.value_or(usual_context));
  if (longest && options.context > *longest)
    throw UserError(fmt::format("--context {}: the model has {} positions", options.context, *longest),
                    "finetune_context", "give a smaller --context");
  return options.context;
}

/// Returns the text's tokens in batches of windows.
TokenBatches batches_of(const EvalOptions& options, const pretrained::AdaptedModel& loaded) {
  const std::int64_t context = context_of(options, *loaded.model.model);
  const std::int64_t stride = options.stride == 0 ? context : options.stride;
  if (stride > context)
    throw UserError(fmt::format("--stride {} is more than the {} tokens of a window", stride, context), "eval_stride",
                    "give a smaller --stride, so that no token is skipped");
  const Tokenizer tokenizer = tokenizer_of(loaded);
  const std::vector<TokenId> ids = tokenizer.encode(read_text(options.text), {.offsets = false}).ids;
  std::vector<Example> parts = windows(ids, context, stride);
  if (parts.empty())
    throw UserError(fmt::format("{} has {} tokens; at least 2 are needed", options.text, ids.size()), "text_short",
                    "give a longer --text");
  print("{}: {} tokens in {} windows of up to {} tokens, stride {}\n", options.text, ids.size(), parts.size(),
        context, stride);
  return TokenBatches(
      std::move(parts),
      {.context = context, .batch = options.batch, .lengths = loaded.model.model->depends_on_length()});
}

void evaluate(const EvalOptions& options) {
  const pretrained::AdaptedModel loaded =
      pretrained::load_adapted<pretrained::CausalLm>(pretrained::find_adapted(options.model, options.adapter));
  note_ignored_keys(options.model, options.adapter);
  const TokenBatches batches = batches_of(options, loaded);
  DiskCache cache(cache_folder());
  CompileOptions compiling = compile_options(options.target);
  compiling.mode = Mode::evaluation;
  compiling.parameters = loaded.model.weights;
  compiling.threads = options.threads;
  compiling.cache = cache.enabled() ? &cache : nullptr;
  const Graph g = token_loss(*loaded.model.model, "eval", Dim("B", options.batch), Dim("T"), false);
  Executable exe = compile(with_precision(g.finish(), options.precision), compiling);
  const std::int64_t count = batches.evaluation_batches();
  double loss = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < count; ++i)
    loss += exe.run(batches.evaluation(i, count)).at("loss").get(0) / static_cast<double>(count);
  const double seconds = seconds_since(start);
  print("loss {:.6f} nats per token over {} tokens, perplexity {:.4f}\n", loss, batches.predictions(),
        std::exp(loss));
  print("{:.0f} tokens/s\n", static_cast<double>(batches.tokens()) / seconds);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Measure the perplexity of a model on a text");
  command->add_option("DIR", options->model, "Model directory, or adapter directory")->required();
  add_adapter_option(*command, options->adapter);
  command->add_option("--text", options->text, "Text file to evaluate; - is standard input")->required();
  between(command->add_option("--context", options->context,
                              "Tokens per window; 0 uses 1024, or the model's context length if it is shorter"),
          0, most_size)
      ->capture_default_str();
  between(command->add_option("--stride", options->stride,
                              "Tokens from the start of one window to the next; 0 uses the length of a window"),
          0, most_size)
      ->capture_default_str();
  between(command->add_option("--batch", options->batch, "Windows per batch"), 1, most_size)->capture_default_str();
  add_precision_option(*command, options->precision);
  add_target_option(*command, options->target);
  add_threads_option(*command, options->threads);
  command->footer("Example: lathe eval Qwen3-0.6B --text book.txt --context 1024 --stride 512");
  command->callback([options] { evaluate(*options); });
}

}  // namespace lathe::tools
