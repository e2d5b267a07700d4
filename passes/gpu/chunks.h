#pragma once

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// Elements of bf16 or f16 per copy of 16 bytes.
inline constexpr int copied_chunk = kernel::async_copy_bytes / 2;

/// Whether a program only loads elements of `dtype`, bf16 or f16, that form aligned chunks of 16 bytes along the last
/// dim in `along` whose size is not 1.
bool lies_in_chunks(const ElementwiseProgram& program, const std::vector<int>& along, DType dtype);

}  // namespace lathe::gpu
