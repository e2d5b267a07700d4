#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "runtime/executable.h"

namespace lathe::test {

/// Options that compile for this machine's GPU, and keep kernels where the command does (tools/environment.h);
/// nothing, said as SKIP on standard output, where it has none.
std::optional<CompileOptions> gpu_options();

/// run(i) for every i of so many: all CPUs compile and compute what is expected, and the GPU takes what comes.
void on_all_cpus(std::size_t runs, const std::function<void(std::size_t i)>& run);

}  // namespace lathe::test
