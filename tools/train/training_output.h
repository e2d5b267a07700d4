#pragma once

#include <cstdint>
#include <string>

#include "runtime/train/progress.h"

/// What commands that train tell, and when they stop.
namespace lathe::tools {

/// "10.8M", "431k", "96".
std::string format_count(double count);

/// A live line on standard output.
ProgressOptions progress_on_output(double tokens_per_step);

/// Whether a signal came, or nobody can be told any more. `progress`: null where this process tells nothing.
bool is_to_stop(const Progress* progress);

/// Ends a run before its last step, with all of it saved in `folder`: says so, where this process speaks for all, and
/// throws Stopped. Of several processes another one may have been told to stop.
[[noreturn]] void end_stopped_run(std::int64_t step, const std::string& folder, bool speaks);

}  // namespace lathe::tools
