#pragma once

#include <filesystem>
#include <string>

#include "models/finetune/imported/imported_tuning.h"
#include "tools/train/training_output.h"

namespace lathe::tools {

/// Output of `lathe finetune` for a graph of another system.
class ImportedTuneOutput : public TrainingOutput {
 public:
  explicit ImportedTuneOutput(const ImportedTuningOptions& options);

  void examples_read(const ExampleSummary& training, const ExampleSummary* validation) override;
  void started(const TrainingStart& start) override;
  void validated(const Validation& validation) override;

  /// Prints the result of a run that was not stopped.
  void finish(const TrainingResult& result);

 private:
  std::filesystem::path data_, output_;
};

}  // namespace lathe::tools
