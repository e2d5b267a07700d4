#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/finetune/training_observer.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/text/dataset/token_batches.h"

namespace lathe {

struct ExampleSettings {
  std::filesystem::path data = {};                ///< a JSONL file; empty: train on plain text
  std::filesystem::path text = {}, sources = {};  ///< the text of this file, or of the source files in this folder
  std::filesystem::path valid = {};               ///< a JSONL file for validation; empty: none
  double valid_share = 0;                         ///< share of the data for validation; 0: none
  BatchOptions batches = {};
};

/// The examples of a run in batches.
class ExampleData {
 public:
  /// Throws UserErrors of read_examples() and read_training_text(); [finetune_valid] for a share of a single example;
  /// [dataset_empty] if there is nothing to learn.
  ExampleData(const pretrained::AdaptedModel& model, const ExampleSettings& settings);

  const TokenBatches& training() const { return *training_; }
  /// Returns null if there is no validation data.
  const TokenBatches* validation() const { return validation_ ? &*validation_ : nullptr; }
  const ExampleSummary& training_summary() const { return training_summary_; }
  /// Returns null if there is no validation data.
  const ExampleSummary* validation_summary() const { return validation_ ? &validation_summary_ : nullptr; }
  /// Returns the SHA-256 of the training data.
  const std::string& hash() const { return hash_; }

 private:
  std::string hash_;
  ExampleSummary training_summary_, validation_summary_;
  std::optional<TokenBatches> training_, validation_;
};

}  // namespace lathe
