#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/hardware/gpu_info.h"
#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// The width of index arithmetic in the emitted text. Indices that may exceed 32 bits use 64 bits, all others use 32.
/// In 32 bits a division takes a third of the time, and a value takes one register. `int64` is valid for all dims.
/// `int32` uses 32 bits for all indices that fit them for small dims, which covers most sizes; check with
/// int32_suffices().
enum class Indices : std::uint8_t { int32, int64 };

/// The i64 values and variables computed in 32 bits. `once`, by loop index: the loop runs at most once, for all dims.
struct IndexWidths {
  std::vector<bool> values, vars, once;
};
IndexWidths index_widths(const kernel::Kernel& kernel, const GpuInfo& gpu, Indices indices);

/// Returns whether, with these dims, every value that `int32` computes in 32 bits fits.
bool int32_suffices(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const std::int64_t> dims);
/// Same for all dims in these ranges.
bool int32_suffices(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const kernel::Range> dims);

}  // namespace lathe::cuda
