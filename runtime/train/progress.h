#pragma once

#include <chrono>
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
  double items = 0;             ///< that a step works on, such as tokens; 0: the rate is in steps
  std::string unit = "tokens";  ///< what items are
  /// Takes text as it is, and says whether it could. Without it standard output does.
  std::function<bool(std::string_view)> write = {};
  /// Whether that is a terminal, on which the line is rewritten. Without it: whether standard output is one.
  std::optional<bool> is_terminal = {};
};

/// The live line of a training run, with its rate and the time that remains:
///
///   step   120/900  loss 2.310  lr 1.0e-03   41234 tokens/s  1:05 left
///
/// On a terminal it is rewritten four times a second, otherwise it is written after the first step, the last one, and
/// every five seconds in between. A step that loss scaling skipped has a line of its own. It is told by the Trainer:
///
///   Progress progress({.items = 8 * 64});
///   Trainer trainer(step, start, {.after_step = [&](const StepReport& report) { progress.step(report); }});
///
/// The clock runs from the start of the first step that it is told of. The loss is averaged, nine tenths of the
/// average before and one tenth of the step's; the learning rate stands there where the step has the output
/// "learning_rate".
class Progress {
 public:
  explicit Progress(ProgressOptions options = {});
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepReport& report);
  /// "validating  12/64 batches  0:03 left", as often as step() writes a line; on a terminal the last batch erases
  /// it.
  void evaluation(const EvaluationReport& report);
  /// Writes a line of its own, above the live one.
  void line(const std::string& text);
  /// Ends the live line, as destruction does.
  void finish();

  /// Items a second so far, or steps where there are no items; 0 before the first step.
  double rate() const;
  /// Of what is left, at the speed so far; 0 before the first step.
  double seconds_left() const;
  /// Whether a line could not be written. Nothing throws for that: a run has more to save than its lines, so let
  /// TrainerOptions::stop ask for it.
  bool output_is_lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_due() const;
  void show(const StepReport& report);
  void put_live(const std::string& text);
  void put(const std::string& text);
  ProgressOptions options_;
  bool terminal_, open_ = false, lost_ = false;
  bool evaluating_ = false;           ///< the open line is one of evaluation()
  std::int64_t done_ = 0, left_ = 0;  ///< steps
  Clock::time_point start_, shown_;
  double smooth_loss_ = 0;
};

}  // namespace lathe
