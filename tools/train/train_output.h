#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "models/finetune/new_model/text_training.h"
#include "tools/train/training_output.h"

namespace lathe::tools {

/// Output of `lathe train`.
class TrainOutput : public TrainingOutput {
 public:
  TrainOutput(const TextTrainingOptions& options, bool prints_graph);

  void text_read(const TextSummary& text) override;
  void model_built(const ir::Graph& loss, const DefaultSplitSummary* splits) override;
  void started(const TrainingStart& start) override;
  void validated(const Validation& validation) override;

  /// Prints the result of a run that was not stopped.
  void finish(const TrainingResult& result);

 private:
  std::string model_;
  std::string units_;  ///< "characters" or "tokens"
  std::int64_t context_;
  std::filesystem::path output_;
  bool prints_graph_;
};

}  // namespace lathe::tools
