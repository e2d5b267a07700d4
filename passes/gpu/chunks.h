#pragma once

#include "ir/kernel/machine/async_copy.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// Elements of bf16 or f16 that are copied at once: 16 bytes.
inline constexpr int copied_chunk = kernel::async_copy_bytes / 2;

/// Whether a program does nothing but load elements of `dtype`, bf16 or f16, which lie in chunks of 16 bytes at
/// multiples of that along the last of these dims of its domain that has a size.
bool lies_in_chunks(const ElementwiseProgram& program, const std::vector<int>& along, DType dtype);

}  // namespace lathe::gpu
