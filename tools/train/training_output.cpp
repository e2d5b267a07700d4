#include "tools/train/training_output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "runtime/files/write/atomic_file.h"
#include "tools/inputs/files.h"
#include "tools/streams.h"
#include "tools/train/loss_curve.h"

namespace lathe::tools {

namespace {

bool print_if_possible(std::string_view text) {
  try {
    print_raw(text);
    return true;
  } catch (const UserError&) {
    return false;
  } catch (const Stopped&) {
    return false;
  }
}

}  // namespace

std::string format_count(double count) {
  if (count >= 1e6) return fmt::format("{:.1f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

TrainingOutput::TrainingOutput(std::filesystem::path folder, std::string_view unit)
    : unit_(unit), folder_(std::move(folder)) {}

void TrainingOutput::warning(const std::string& text) { print("warning: {}\n", text); }

void TrainingOutput::note(const std::string& text) { print_error(fmt::format("note: {}\n", text)); }

void TrainingOutput::model_built(const ir::Graph&, const DefaultSplitSummary* splits) {
  if (!splits) return;
  std::string all;
  for (const Split& split : splits->splits)
    all += fmt::format("{}{}:{}", all.empty() ? "" : ",", split.dim, split.axis);
  std::string text = fmt::format("--split {} (default)\n", all.empty() ? "nothing" : all);
  for (const std::string& why : splits->left_out) text += fmt::format("  not {}\n", why);
  print("{}", text);
}

void TrainingOutput::print_weights(const TrainingStart& start) {
  std::int64_t weight_bytes = 0, state_bytes = 0;
  for (const Program::Slot& slot : program_of(start.step).states)
    (slot.is_parameter ? weight_bytes : state_bytes) +=
        slot.shape.numel().evaluate({}) * static_cast<std::int64_t>(size_in_bytes(slot.dtype));
  const MemoryPlan plan = memory_plan_of(start.step, start.sizes);
  if (const auto& ranks = start.step.ranks())
    print("{} processes: {}; memory below is per process\n", ranks->size(), start.sharding);
  print("{}", start.step.summary().division);
  const auto all = static_cast<double>(start.parameters), trained = static_cast<double>(start.trained);
  print("{}: {} parameters, {} trained ({:.2f}%)\n", start.model, format_count(all), format_count(trained),
        100 * trained / all);
  print("memory: {} of weights, {} of optimizer states, {} of activations at peak\n", format_bytes(weight_bytes),
        format_bytes(state_bytes), format_bytes(plan.arena_bytes));
}

void TrainingOutput::start_steps(const TrainingStart& start, const std::string& items) {
  AtomicFile::remove_leftovers(curve_file());
  for (const std::string& changed : start.changed_settings) print("{}\n", changed);
  if (start.checkpoint)
    print("resuming after step {} from the checkpoint in {}\n", start.completed, visible(start.checkpoint->string()));
  progress_.emplace(ProgressOptions{.items = start.tokens_per_step,
                                    .unit = items,
                                    .write = print_if_possible,
                                    .is_terminal = isatty(STDOUT_FILENO) == 1});
}

void TrainingOutput::step_done(const StepReport& step) { progress_->step(step); }

void TrainingOutput::validating(const EvaluationReport& progress) { progress_->evaluation(progress); }

void TrainingOutput::replaying(std::int64_t first, std::int64_t last) {
  const std::string steps =
      first == last ? fmt::format("step {}", first) : fmt::format("steps {} to {}", first, last);
  progress_->line(fmt::format("The run has diverged; repeating {} to find the op that made the first NaN", steps));
}

void TrainingOutput::line(const std::string& text) { progress_->line(text); }

void TrainingOutput::saved(const std::filesystem::path&, const LossHistory& history) { write_curve(history); }

void TrainingOutput::write_curve(const LossHistory& history) const {
  write_text(curve_file().string(), loss_curve_svg(curve_title_, history.training, history.evaluation, unit_));
}

bool TrainingOutput::is_to_stop() {
  if (!signals_) signals_.emplace();
  return StopSignals::received() != 0 || (progress_ && progress_->output_is_lost());
}

void TrainingOutput::end_stopped(std::int64_t step, bool is_first) {
  progress_.reset();
  const int signal = StopSignals::received();
  if (!is_first) throw Stopped(signal != 0 ? signal : SIGTERM);
  const std::string text =
      fmt::format("Stopped after step {}. Checkpoint in {}; run the same command again to resume.\n", step,
                  visible(folder_.string()));
  try {
    print_text(text);
  } catch (const Error&) {
    if (signal == 0) throw;  // do not write to a terminal that hung up
  } catch (const Stopped&) {
    print_error(text);
    if (signal == 0) throw;
  }
  throw Stopped(signal);
}

void TrainingOutput::end(const LossHistory& history) {
  progress_.reset();
  write_curve(history);
}

}  // namespace lathe::tools
