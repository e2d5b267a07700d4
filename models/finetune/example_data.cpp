#include "models/finetune/example_data.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/finetune/model_directory.h"
#include "models/text/chat/chat_template.h"
#include "models/text/corpus.h"
#include "models/text/dataset/read_examples.h"
#include "runtime/files/sha256.h"

namespace lathe {

namespace {

std::string hash_of(const std::vector<Example>& examples) {
  Sha256 hash;
  for (const Example& example : examples) {
    hash.update(std::as_bytes(std::span(example.ids)));
    hash.update(std::as_bytes(std::span(example.learned)));
  }
  return to_hex(hash.finish());
}

TokenBatches batches_of(std::vector<Example> examples, const std::string& what, const BatchOptions& options,
                        ExampleSummary& summary) {
  summary.examples = static_cast<std::int64_t>(examples.size());
  FitReport report;
  examples = fit(std::move(examples), options.context, report);
  if (examples.empty())
    throw UserError(fmt::format("no {} example has a token to train on within {} tokens", what, options.context),
                    "dataset_empty", "give a larger context");
  TokenBatches batches(std::move(examples), options);
  summary.tokens = batches.tokens();
  summary.predictions = batches.predictions();
  summary.rows = batches.rows();
  summary.split = report.split;
  summary.cut = report.cut;
  summary.dropped = report.dropped;
  return batches;
}

}  // namespace

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
  if (settings.valid_share > 0) {
    if (examples.size() < 2)
      throw UserError("the data has only one example, so no validation data can be split off", "finetune_valid",
                      "give more examples, or a file for validation");
    apart = split_off(examples, settings.valid_share, settings.batches.seed);
  } else if (!settings.valid.empty()) {
    apart = read_examples(settings.valid, tokenizer, options);
  }
  hash_ = hash_of(examples);
  training_.emplace(batches_of(std::move(examples), "training", settings.batches, training_summary_));
  if (!apart.empty())
    validation_.emplace(batches_of(std::move(apart), "validation", settings.batches, validation_summary_));
}

}  // namespace lathe
