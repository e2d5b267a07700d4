#include "tools/train/imported_tune_output.h"

#include <fmt/core.h>

#include "ir/support/visible.h"
#include "tools/streams.h"

namespace lathe::tools {

ImportedTuneOutput::ImportedTuneOutput(const ImportedTuningOptions& options)
    : TrainingOutput(options.output / "training", "example"), data_(options.data), output_(options.output) {}

void ImportedTuneOutput::examples_read(const ExampleSummary& training, const ExampleSummary* validation) {
  print("training: {} examples", training.examples);
  if (validation) print("; validation: {} examples", validation->examples);
  if (training.empty_caches > 0) print("; no cached rows in {} inputs past_key_values.*", training.empty_caches);
  print("\n");
}

void ImportedTuneOutput::started(const TrainingStart& start) {
  curve_title_ = fmt::format("{} on {}", start.model, data_.filename().string());
  print_weights(start);
  print("{} steps of {} examples; {:.1f} epochs\n", start.steps, start.rows_per_step, start.epochs);
  if (start.validation_batches > 0)
    print("validation on {} of {} batches\n", start.validation_batches, start.all_validation_batches);
  start_steps(start, "examples");
}

void ImportedTuneOutput::validated(const Validation& validation) {
  line(fmt::format("step {:>5}  validation loss {:.4f}", validation.step, validation.loss));
}

void ImportedTuneOutput::finish(const TrainingResult& result) {
  end(result.history);
  print("parameters in {}; metrics.jsonl and loss.svg in {}\n", visible((output_ / "model.safetensors").string()),
        visible((output_ / "training").string()));
}

}  // namespace lathe::tools
