#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/graph.h"
#include "runtime/compile.h"
#include "runtime/train/loss_history.h"
#include "runtime/train/step_report.h"

namespace lathe {

/// The text of TextTraining.
struct TextSummary {
  std::string_view unit;  ///< "characters" or "tokens"
  std::int64_t bytes = 0;
  std::int64_t distinct = 0;                  ///< different characters, or the number of tokens in the vocabulary
  std::int64_t training = 0, validation = 0;  ///< characters or tokens
};

/// The examples of FineTuning, for training or validation.
struct ExampleSummary {
  std::int64_t examples = 0;     ///< as read
  std::int64_t tokens = 0;       ///< of the examples that are used
  std::int64_t predictions = 0;  ///< tokens that are trained on
  std::int64_t rows = 0;
  /// Texts that were split into several examples, examples whose end was cut off, and examples that were dropped
  /// because they have no token to train on.
  std::int64_t split = 0, cut = 0, dropped = 0;
  /// Inputs past_key_values.* of an imported decoder that the examples lack. They have no cached rows.
  std::int64_t empty_caches = 0;
};

/// How the model's graph is split over several processes by default, if no splits are given.
struct DefaultSplitSummary {
  std::vector<Split> splits;
  std::vector<std::string> left_out;  ///< a line for each dim that cannot be split, with the reason
};

/// A run after its step is compiled, before the first step.
struct TrainingStart {
  const Executable& step;
  const DimBindings& sizes;  ///< the largest sizes of the step's dims on this process
  std::string_view model;    ///< kind of the model: "llama"
  std::int64_t parameters = 0, trained = 0;
  bool is_adapter = false;  ///< only an adapter is trained and written
  std::int64_t rows_per_step = 0, steps = 0;
  double epochs = 0;                                                ///< passes over the rows; 0 for TextTraining
  double tokens_per_step = 0;                                       ///< or characters, without padding
  std::int64_t validation_batches = 0, all_validation_batches = 0;  ///< per validation, and of all data
  std::string sharding = {};  ///< "--mesh data=4 --split B:data"; empty for one process
  /// For a resumed run: the completed steps, the checkpoint, and a line for each setting that changed.
  std::int64_t completed = 0;
  std::optional<std::filesystem::path> checkpoint = {};
  std::vector<std::string> changed_settings = {};
};

struct Validation {
  std::int64_t step = 0;  ///< completed steps
  double loss = 0;        ///< mean over tokens or characters, in nats
  std::int64_t batches = 0, all_batches = 0;
  bool is_last = false;  ///< after the last step
};

/// A sample that FineTuning generated during training.
struct GeneratedSample {
  std::int64_t step = 0;
  const std::string& prompt;
  const std::string& text;  ///< without the prompt
};

/// Receives the events of a run, on its thread. With several processes, only rank 0 calls it. An exception ends the
/// run without saving. Override the events that matter:
///
///   struct Losses : TrainingObserver {
///     void step_done(const StepReport& step) override { losses.push_back(step.loss); }
///     std::vector<double> losses;
///   };
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  /// Something that was skipped, such as a damaged checkpoint.
  virtual void warning(const std::string& text) { static_cast<void>(text); }
  /// Something to know about the model's files, such as a key that has no effect.
  virtual void note(const std::string& text) { static_cast<void>(text); }
  /// TextTraining has read its text.
  virtual void text_read(const TextSummary& text) { static_cast<void>(text); }
  /// FineTuning has read its examples; `validation` is null without validation data.
  virtual void examples_read(const ExampleSummary& training, const ExampleSummary* validation) {
    static_cast<void>(training), static_cast<void>(validation);
  }
  /// The graph of the loss is built. `splits` is null unless default splits are used.
  virtual void model_built(const ir::Graph& loss, const DefaultSplitSummary* splits) {
    static_cast<void>(loss), static_cast<void>(splits);
  }
  virtual void started(const TrainingStart& start) { static_cast<void>(start); }
  /// A step is done: an update of all its accumulated batches.
  virtual void step_done(const StepReport& step) { static_cast<void>(step); }
  virtual void validating(const EvaluationReport& progress) { static_cast<void>(progress); }
  virtual void validated(const Validation& validation) { static_cast<void>(validation); }
  virtual void sampled(const GeneratedSample& sample) { static_cast<void>(sample); }
  /// The run has diverged, and steps first .. last are repeated to find the op that made the first result that is not
  /// finite.
  virtual void replaying(std::int64_t first, std::int64_t last) { static_cast<void>(first), static_cast<void>(last); }
  /// A checkpoint, or the state of a diverged run, is written. `history` has one loss per step.
  virtual void saved(const std::filesystem::path& folder, const LossHistory& history) {
    static_cast<void>(folder), static_cast<void>(history);
  }
};

/// The result of a run; with several processes it is the same on all of them.
struct TrainingResult {
  std::int64_t steps = 0;                     ///< completed in total, including those of earlier runs
  bool stopped = false;                       ///< `stop` returned true: the work is saved, and run() resumes it
  LossHistory history;                        ///< one loss per step, one per validation
  std::optional<Validation> validation = {};  ///< the one after the last step

  /// Returns the loss of the last step; nullopt before the first one.
  std::optional<double> last_loss() const;
  /// Returns the validation with the lowest loss; nullopt without validations.
  std::optional<LossPoint> best_validation() const;
};

}  // namespace lathe
