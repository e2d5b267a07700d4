#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lathe::tools {

/// "1:05", "2:03:04".
std::string format_duration(double seconds);
/// "10.8M", "431k", "96".
std::string format_count(double count);

/// Live progress of a training run: on a terminal one line that is rewritten, otherwise a line now and then.
class Progress {
 public:
  Progress(std::int64_t first, std::int64_t last, double tokens_per_step);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(std::int64_t step, double loss, double rate);
  /// Prints a line of its own, above the live one.
  void line(const std::string& text);
  void finish();
  /// Whether standard output took a line no more. Nothing throws for that: a run has more to save than its lines.
  bool output_is_lost() const { return lost_; }
  double tokens_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;
  void show(std::int64_t step, double loss, double rate);
  void put(const std::string& text);
  std::int64_t first_, last_, done_ = 0;
  double tokens_per_step_;
  bool terminal_, open_ = false, lost_ = false;
  Clock::time_point start_, shown_;
  double smooth_loss_ = 0;
};

}  // namespace lathe::tools
