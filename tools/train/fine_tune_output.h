#pragma once

#include <cstdint>
#include <filesystem>

#include "models/finetune/fine_tuning.h"
#include "tools/train/training_output.h"

namespace lathe::tools {

/// Output of `lathe finetune`.
class FineTuneOutput : public TrainingOutput {
 public:
  explicit FineTuneOutput(const FineTuneOptions& options);

  void examples_read(const ExampleSummary& training, const ExampleSummary* validation) override;
  void started(const TrainingStart& start) override;
  void step_done(const StepReport& step) override;
  void validated(const Validation& validation) override;
  void sampled(const GeneratedSample& sample) override;

  /// Prints the result of a run that was not stopped.
  void finish(const TrainingResult& result);

 private:
  std::int64_t context_;
  std::filesystem::path data_, output_;
  bool is_adapter_ = false, time_reported_ = false;
};

}  // namespace lathe::tools
