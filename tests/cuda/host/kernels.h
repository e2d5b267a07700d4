#pragma once

#include "ir/kernel/kernel.h"

/// Kernels with blocks and threads that several tests use.
namespace lathe::test {

/// y[i] = x[i] * 2 for i < n: blocks of 32 threads with 4 elements per thread, masked tail.
kernel::Kernel scale_kernel();
/// Each block of 32 threads reverses its 32 elements through shared memory; without the barrier it has a race.
kernel::Kernel reverse_kernel(bool with_barrier = true);
/// out[row] = sum over col of x[row, col]: a block per row, a tree over 64 threads in shared memory.
kernel::Kernel row_sum_kernel();
/// y[t] = the value loaded by thread (7 t + 3) rem 32 of its warp, for 64 threads.
kernel::Kernel turn_kernel(DType dtype = f32);

}  // namespace lathe::test
