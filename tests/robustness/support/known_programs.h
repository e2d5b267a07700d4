#pragma once

#include <span>
#include <string>

namespace lathe::robustness {

/// Returns IR text to start from: past findings of the fuzzer, programs that break each rule, models, and odd names.
std::span<const std::string> known_programs();

}  // namespace lathe::robustness
