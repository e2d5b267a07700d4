#pragma once

#include <span>
#include <string>

namespace lathe::robustness {

/// IR text to start from: what the fuzzer once found, programs that break each rule, models, and odd names.
std::span<const std::string> known_programs();

}  // namespace lathe::robustness
