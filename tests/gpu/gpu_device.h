#pragma once

#include <optional>

#include "runtime/executable.h"

namespace lathe::test {

/// Options that compile for this machine's GPU, and keep kernels where the command does (tools/environment.h);
/// nothing, said as SKIP on standard output, where it has none.
std::optional<CompileOptions> gpu_options();

}  // namespace lathe::test
