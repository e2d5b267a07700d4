#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/pretrained/lora/adapted_model.h"
#include "models/text/dataset/token_batches.h"

namespace lathe {

struct ExampleSettings {
  std::filesystem::path data;           ///< a JSONL file; empty: train on plain text
  std::filesystem::path text, sources;  ///< the text of this file, or of the source files in this folder
  std::string valid;                    ///< a file, or a fraction of the data such as 0.1; empty: no validation
  BatchOptions batches = {};
};

/// The examples of a run in batches.
class ExampleData {
 public:
  /// Throws UserErrors of read_examples() and training_text(); [finetune_valid] for an invalid share; [dataset_empty]
  /// if there is nothing to learn.
  ExampleData(const pretrained::AdaptedModel& model, const ExampleSettings& settings);

  const TokenBatches& training() const { return *training_; }
  /// Returns null if there is no validation data.
  const TokenBatches* validation() const { return validation_ ? &*validation_ : nullptr; }
  /// Returns a readable summary of the data that was read.
  const std::string& story() const { return story_; }
  /// Returns the SHA-256 of the training data.
  const std::string& hash() const { return hash_; }

 private:
  TokenBatches made(std::vector<Example> examples, const std::string& what, const BatchOptions& options);

  std::string story_, hash_;
  std::optional<TokenBatches> training_, validation_;
};

}  // namespace lathe
