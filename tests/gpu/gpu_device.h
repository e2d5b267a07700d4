#pragma once

#include <optional>

#include "runtime/executable.h"

namespace lathe::test {

/// Options that compile for this machine's GPU; nothing, said as SKIP on standard output, where it has none.
std::optional<CompileOptions> gpu_options();

}  // namespace lathe::test
