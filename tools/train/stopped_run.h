#pragma once

#include <cstdint>
#include <string>

namespace lathe::tools {

/// Says that a run ends before its last step with all of it saved in `folder`, and throws Stopped.
[[noreturn]] void end_stopped_run(std::int64_t step, const std::string& folder);

}  // namespace lathe::tools
