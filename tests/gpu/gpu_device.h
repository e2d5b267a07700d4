#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "passes/gpu/gpu_sizes.h"
#include "runtime/compile.h"

namespace lathe::test {

/// Returns options that compile for this machine's GPU and cache kernels where the command does
/// (tools/environment.h). Schedules use `sizes`. Prints SKIP to stdout and returns nothing without a GPU.
std::optional<CompileOptions> gpu_options(const gpu::GpuSizes& sizes = {});

/// Calls run(i) for `runs` values of i: all CPUs compile and compute the expected results, and the GPU runs them as
/// they become ready.
void on_all_cpus(std::size_t runs, const std::function<void(std::size_t i)>& run);

}  // namespace lathe::test
