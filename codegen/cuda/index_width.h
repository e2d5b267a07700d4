#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/machine/gpu_info.h"

namespace lathe::cuda {

/// How the text of a kernel computes indices: those that may be beyond 32 bits in 64, all others in 32, where a
/// division takes a third of the time and a value one register. `int64`: whatever the dims are. `int32`: whatever
/// fits 32 bits for small dims, which suffices for most sizes that occur; int32_suffices() tells.
enum class Indices : std::uint8_t { int32, int64 };

/// What is computed in 32 bits, of what is i64 in the kernel; and by value that is the index of a loop, whether that
/// runs once at most, whatever the dims are.
struct IndexWidths {
  std::vector<bool> values, vars, once;
};
IndexWidths index_widths(const kernel::Kernel& kernel, const GpuInfo& gpu, Indices indices);

/// Whether with these dims nothing that is computed in 32 bits, as `int32` has it, leaves them.
bool int32_suffices(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const std::int64_t> dims);

}  // namespace lathe::cuda
