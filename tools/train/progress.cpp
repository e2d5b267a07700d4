#include "tools/train/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>

#include "ir/support/error.h"
#include "runtime/machine/seconds.h"
#include "tools/streams.h"

namespace lathe::tools {

std::string format_duration(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (total >= 3600) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string format_count(double count) {
  if (count >= 1e6) return fmt::format("{:.1f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

Progress::Progress(std::int64_t first, std::int64_t last, double tokens_per_step)
    : first_(first),
      last_(last),
      tokens_per_step_(tokens_per_step),
      terminal_(isatty(STDOUT_FILENO) == 1),
      start_(Clock::now()),
      shown_(start_) {}

double Progress::tokens_per_second() const {
  const double took = seconds_since(start_);
  return took > 0 ? static_cast<double>(done_) * tokens_per_step_ / took : 0;
}

void Progress::step(std::int64_t step, double loss, double rate) {
  ++done_;
  smooth_loss_ = done_ == 1 ? loss : 0.9 * smooth_loss_ + 0.1 * loss;
  const double since = seconds_since(shown_);
  const bool last = step == last_;
  const bool due = terminal_ ? since >= 0.25 : since >= 5 || done_ == 1;
  if (due || last) show(step, smooth_loss_, rate);
}

void Progress::show(std::int64_t step, double loss, double rate) {
  shown_ = Clock::now();
  const double took = std::chrono::duration<double>(shown_ - start_).count();
  const double left = took / static_cast<double>(done_) * static_cast<double>(last_ - step);
  const std::string text = fmt::format("step {:>5}/{}  loss {:.3f}  lr {:.1e}  {:>6.0f} tokens/s  {} left", step,
                                       last_, loss, rate, tokens_per_second(), format_duration(left));
  put(terminal_ ? "\r\x1b[2K" + text : text + "\n");
  open_ = terminal_;
}

void Progress::put(const std::string& text) {
  try {
    print_raw(text);
  } catch (const UserError&) {
    lost_ = true;
  }
}

void Progress::line(const std::string& text) {
  finish();
  put(text + "\n");
}

void Progress::finish() {
  if (open_) put("\n");
  open_ = false;
}

}  // namespace lathe::tools
