#include "models/finetune/example_data.h"

#include <fmt/core.h>

#include <charconv>

#include "ir/support/error.h"
#include "models/finetune/model_directory.h"
#include "models/text/chat/chat_template.h"
#include "models/text/corpus.h"
#include "models/text/dataset/read_examples.h"
#include "runtime/files/paths.h"
#include "runtime/files/sha256.h"

namespace lathe {

namespace {

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

std::string hash_of(const std::vector<Example>& examples) {
  Sha256 hash;
  for (const Example& example : examples) {
    hash.update(std::as_bytes(std::span(example.ids)));
    hash.update(std::as_bytes(std::span(example.learned)));
  }
  return to_hex(hash.finish());
}

}  // namespace

TokenBatches ExampleData::made(std::vector<Example> examples, const std::string& what, const BatchOptions& options) {
  const std::size_t read = examples.size();
  FitReport report;
  examples = fit(std::move(examples), options.context, report);
  if (examples.empty())
    throw UserError(fmt::format("no {} example has a token to train on within {} tokens", what, options.context),
                    "dataset_empty", "give a larger --context");
  TokenBatches batches(std::move(examples), options);
  story_ += fmt::format("{}: {} examples, {} tokens ({} to train on), in {} rows", what, read, batches.tokens(),
                        batches.predictions(), batches.rows());
  if (report.split) story_ += fmt::format("; {} longer than {} tokens are split", report.split, options.context);
  if (report.cut) story_ += fmt::format("; {} are truncated", report.cut);
  if (report.dropped) story_ += fmt::format("; {} without tokens to train on are skipped", report.dropped);
  story_ += "\n";
  return batches;
}

ExampleData::ExampleData(const pretrained::AdaptedModel& model, const ExampleSettings& settings) {
  const Tokenizer tokenizer = tokenizer_of(model);
  const auto chats = ChatTemplates::find(model.text_folder);
  const ExampleOptions options{.end = end_token(model, tokenizer), .chat = chats ? &chats->get() : nullptr};
  std::vector<Example> apart, examples;
  if (settings.data.empty()) {
    const std::string text = text::read_training_text(settings.text, settings.sources);
    const std::int64_t context = settings.batches.context;
    examples = windows(tokenizer.encode(text, {.special_tokens = false, .offsets = false}).ids, context, context);
  } else {
    examples = read_examples(settings.data, tokenizer, options);
  }
  if (const auto share = share_of(settings.valid)) {
    if (examples.size() < 2)
      throw UserError("the data has only one example, so no validation data can be split off", "finetune_valid",
                      "give more examples, or a file with --valid");
    apart = split_off(examples, *share, settings.batches.seed);
  } else if (!settings.valid.empty()) {
    apart = read_examples(settings.valid, tokenizer, options);
  }
  hash_ = hash_of(examples);
  training_.emplace(made(std::move(examples), "training", settings.batches));
  if (!apart.empty()) validation_.emplace(made(std::move(apart), "validation", settings.batches));
}

}  // namespace lathe
