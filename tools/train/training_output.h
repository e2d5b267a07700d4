#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "models/finetune/training_observer.h"
#include "runtime/train/progress.h"
#include "tools/stop_signals.h"

namespace lathe::tools {

/// Returns "10.8M", "431k", "96".
std::string format_count(double count);

/// Output of a training command: what `lathe train` and `lathe finetune` print in common, the loss curve, and their
/// stop conditions. The first process prints.
class TrainingOutput : public TrainingObserver {
 public:
  /// `folder` has the checkpoints and gets the file loss.svg. Losses are in nats per `unit`.
  TrainingOutput(std::filesystem::path folder, std::string_view unit);

  void warning(const std::string& text) override;
  void note(const std::string& text) override;
  void model_built(const ir::Graph& loss, const DefaultSplitSummary* splits) override;
  void step_done(const StepReport& step) override;
  void validating(const EvaluationReport& progress) override;
  void replaying(std::int64_t first, std::int64_t last) override;
  void saved(const std::filesystem::path& folder, const LossHistory& history) override;

  /// Returns whether a signal was received or output was lost. The first call, before the first step, starts to
  /// handle signals.
  bool is_to_stop();

  /// Ends a run before its last step, after everything was saved. Prints a message on the first process, and throws
  /// Stopped. With several processes, another one may have received the signal.
  [[noreturn]] void end_stopped(std::int64_t step, bool is_first);
  /// Ends the live line and writes the loss curve of the whole run.
  void end(const LossHistory& history);

 protected:
  /// Prints the numbers of parameters, and the memory of weights, states and activations.
  static void print_weights(const TrainingStart& start);
  /// Prints from where a run resumes and with which other settings, and starts the live line, with the rate in
  /// `items`.
  void start_steps(const TrainingStart& start, const std::string& items = "tokens");
  /// Prints a line above the live one.
  void line(const std::string& text);

  std::string curve_title_;
  std::string_view unit_;

 private:
  void write_curve(const LossHistory& history) const;
  std::filesystem::path curve_file() const { return folder_ / "loss.svg"; }

  std::filesystem::path folder_;
  std::optional<Progress> progress_;  ///< set while the run is live
  std::optional<StopSignals> signals_;
};

}  // namespace lathe::tools
