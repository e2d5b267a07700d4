#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "frontend/pretrained/lora/adapted_model.h"
#include "runtime/text/dataset/token_batches.h"

namespace lathe::tools {

struct ExampleSettings {
  std::filesystem::path data;           ///< JSONL; empty: plain text is learned
  std::filesystem::path text, sources;  ///< that of this file, else of the source files below this folder
  std::string valid;                    ///< a file, or a share of the data such as 0.1; empty: none
  BatchOptions batches = {};
};

/// The examples of a run, as batches.
class ExampleData {
 public:
  /// UserErrors of read_examples() and training_text(); [finetune_valid] for a share that is none; [dataset_empty]
  /// where nothing is left to learn.
  ExampleData(const pretrained::AdaptedModel& model, const ExampleSettings& settings);

  const TokenBatches& training() const { return *training_; }
  /// Null where there is none.
  const TokenBatches* validation() const { return validation_ ? &*validation_ : nullptr; }
  /// What was read, and what became of it: lines for a person.
  const std::string& story() const { return story_; }
  /// SHA-256 of what is trained on.
  const std::string& hash() const { return hash_; }

 private:
  TokenBatches made(std::vector<Example> examples, const std::string& what, const BatchOptions& options);

  std::string story_, hash_;
  std::optional<TokenBatches> training_, validation_;
};

}  // namespace lathe::tools
