#include "tools/train/training_output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>

#include "ir/support/error.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"

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

ProgressOptions progress_on_output(double tokens_per_step) {
  return {.items = tokens_per_step, .write = print_if_possible, .is_terminal = isatty(STDOUT_FILENO) == 1};
}

bool is_to_stop(const Progress* progress) {
  return StopSignals::received() != 0 || (progress && progress->output_is_lost());
}

void end_stopped_run(std::int64_t step, const std::string& folder, bool speaks) {
  const int signal = StopSignals::received();
  if (!speaks) throw Stopped(signal != 0 ? signal : SIGTERM);
  const std::string text =
      fmt::format("Stopped after step {}. Checkpoint in {}; run the same command again to resume.\n", step, folder);
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

}  // namespace lathe::tools
