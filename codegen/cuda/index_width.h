#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// How the text of a kernel computes indices: those that may be beyond 32 bits in 64, all others in 32, where a
/// division takes a third of the time and a value one register. `wide`: whatever the dims are. `narrow`: whatever is
/// narrow for small dims, which suffices for most sizes that occur; narrow_suffices() tells.
enum class Indices : std::uint8_t { narrow, wide };

/// What is computed in 32 bits, of what is i64 in the kernel; and by value that is the index of a loop, whether that
/// runs once at most, whatever the dims are.
struct IndexWidths {
  std::vector<bool> values, vars, once;
};
IndexWidths index_widths(const kernel::Kernel& kernel, Indices indices);

/// Whether with these dims nothing that is computed in 32 bits, as `narrow` has it, leaves them.
bool narrow_suffices(const kernel::Kernel& kernel, std::span<const std::int64_t> dims);

}  // namespace lathe::cuda
