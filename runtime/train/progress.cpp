#include "runtime/train/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/files/write/write_stream.h"

namespace lathe {

namespace {

bool write_to_output(std::string_view text) { return write_stream(stdout, text); }

/// Returns the seconds since the epoch of the steady clock.
double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns a scalar output of the step; nullopt if the step has no such output.
std::optional<double> number(const Tensors& outputs, std::string_view name) {
  const auto found = outputs.find(name);
  return found == outputs.end() ? std::nullopt : std::optional(found->second.get(0));
}

}  // namespace

std::string format_duration(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      terminal_(options_.is_terminal.value_or(!options_.write && isatty(STDOUT_FILENO) == 1)) {
  if (!options_.write) options_.write = write_to_output;
  if (!options_.clock) options_.clock = steady_seconds;
}

double Progress::rate() const {
  const double took = done_ > 0 ? options_.clock() - start_ : 0;
  return took > 0 ? static_cast<double>(done_) * (options_.items > 0 ? options_.items : 1) / took : 0;
}

double Progress::seconds_left() const {
  return done_ > 0 ? (options_.clock() - start_) / static_cast<double>(done_) * static_cast<double>(left_) : 0;
}

void Progress::step(const StepReport& report) {
  if (done_ == 0) start_ = options_.clock() - report.seconds;
  ++done_;
  left_ = report.last - report.step;
  smooth_loss_ = done_ == 1 ? report.loss : 0.9 * smooth_loss_ + 0.1 * report.loss;
  if (done_ == 1 || left_ == 0 || is_due()) show(report);
  if (report.skipped)
    line(fmt::format("step {:>5}  skipped: a gradient is not finite at the loss scale {:.0f}", report.step,
                     number(report.outputs, "loss_scale").value_or(1)));
}

void Progress::evaluation(const EvaluationReport& report) {
  if (report.done == report.count) {
    if (std::exchange(evaluating_, false) && std::exchange(open_, false)) put("\r\x1b[2K");
    return;
  }
  if (!is_due()) return;
  const double left =
      report.seconds / static_cast<double>(report.done) * static_cast<double>(report.count - report.done);
  if (open_ && !evaluating_) finish();
  put_live(fmt::format("validating  {}/{} batches  {} left", report.done, report.count, format_duration(left)));
  evaluating_ = true;
}

bool Progress::is_due() const { return options_.clock() - shown_ >= (terminal_ ? 0.25 : 5); }

void Progress::show(const StepReport& report) {
  std::string text = fmt::format("step {:>5}/{}  loss {:.3f}", report.step, report.last, smooth_loss_);
  if (const auto learning_rate = number(report.outputs, "learning_rate"))
    text += fmt::format("  lr {:.1e}", *learning_rate);
  text += options_.items > 0 ? fmt::format("  {:>6.0f} {}/s", rate(), options_.unit)
                             : fmt::format("  {:>6.2f} steps/s", rate());
  text += fmt::format("  {} left", format_duration(seconds_left()));
  put_live(text);
}

void Progress::put_live(const std::string& text) {
  shown_ = options_.clock();
  put(terminal_ ? "\r\x1b[2K" + text : text + "\n");
  open_ = terminal_;
  evaluating_ = false;
}

void Progress::put(const std::string& text) { lost_ = !options_.write(text) || lost_; }

void Progress::line(const std::string& text) {
  finish();
  put(text + "\n");
}

void Progress::finish() {
  if (open_) put("\n");
  open_ = false;
}

}  // namespace lathe
