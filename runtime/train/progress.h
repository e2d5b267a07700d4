#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/train/step_report.h"

namespace lathe {

/// "1:05", "2:03:04".
std::string format_duration(double seconds);

struct ProgressOptions {
  double items = 0;             ///< number of items per step, such as tokens; 0: show the rate in steps
  std::string unit = "tokens";  ///< name of the items
  /// Writes text unchanged and returns whether it succeeded. Default: standard output.
  std::function<bool(std::string_view)> write = {};
  /// Whether the output is a terminal, where the line is rewritten. Default: check standard output.
  std::optional<bool> is_terminal = {};
  /// Seconds since any fixed time. Default: the system's steady clock.
  std::function<double()> clock = {};
};

/// Live progress line of a training run, with its rate and the remaining time:
///
///   step   120/900  loss 2.310  lr 1.0e-03   41234 tokens/s  1:05 left
///
/// On a terminal it is rewritten four times per second. Otherwise it is written after the first and the last step,
/// and every five seconds in between. A step that loss scaling skipped gets its own line. The Trainer calls it:
///
///   Progress progress({.items = 8 * 64});
///   Trainer trainer(step, start, {.after_step = [&](const StepReport& report) { progress.step(report); }});
///
/// The clock starts with the first reported step. The loss is a moving average: nine tenths of the previous average
/// and one tenth of the step's loss. The learning rate is shown if the step has the output "learning_rate".
class Progress {
 public:
  explicit Progress(ProgressOptions options = {});
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepReport& report);
  /// Shows "validating  12/64 batches  0:03 left", as often as step() writes a line. On a terminal, the last batch
  /// erases it.
  void evaluation(const EvaluationReport& report);
  /// Writes a separate line above the live one.
  void line(const std::string& text);
  /// Ends the live line. The destructor does so too.
  void finish();

  /// Returns items per second so far, or steps per second without items; 0 before the first step.
  double rate() const;
  /// Returns the remaining time at the speed so far; 0 before the first step.
  double seconds_left() const;
  /// Returns whether a line could not be written. This never throws, because the run still has to save its state;
  /// TrainerOptions::stop can check it.
  bool output_is_lost() const { return lost_; }

 private:
  bool is_due() const;
  void show(const StepReport& report);
  void put_live(const std::string& text);
  void put(const std::string& text);
  ProgressOptions options_;
  bool terminal_, open_ = false, lost_ = false;
  bool evaluating_ = false;           ///< the open line was written by evaluation()
  std::int64_t done_ = 0, left_ = 0;  ///< in steps
  double start_ = 0, shown_ = 0;      ///< seconds of a steady clock
  double smooth_loss_ = 0;
};

}  // namespace lathe
