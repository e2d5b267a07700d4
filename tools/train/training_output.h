#pragma once

#include <cstdint>
#include <string>

#include "runtime/train/progress.h"

/// Output of training commands, and their stop conditions.
namespace lathe::tools {

/// Returns "10.8M", "431k", "96".
std::string format_count(double count);

/// Returns options for a live line on standard output.
ProgressOptions progress_on_output(double tokens_per_step);

/// Returns whether a signal was received or output was lost. `progress` is null if this process prints nothing.
bool is_to_stop(const Progress* progress);

/// Ends a run before its last step, after everything was saved in `folder`. Prints a message if `speaks`, and throws
/// Stopped. With several processes, another one may have received the signal.
[[noreturn]] void end_stopped_run(std::int64_t step, const std::string& folder, bool speaks);

}  // namespace lathe::tools
