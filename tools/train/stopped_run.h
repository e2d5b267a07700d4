#pragma once

#include <cstdint>
#include <string>

namespace lathe::tools {

/// Ends a run before its last step, with all of it saved in `folder`: says so, where this process speaks for all, and
/// throws Stopped. Of several processes another one may have been told to stop.
[[noreturn]] void end_stopped_run(std::int64_t step, const std::string& folder, bool speaks);

}  // namespace lathe::tools
