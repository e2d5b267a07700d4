#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::testing {

/// C[12, 32] = A^T B for packed panels, A: f32[k, 12], B: f32[k, 32], C: f32[12, 32], repeated `repeats` times: the
/// register tile of a matmul, with 24 accumulators of 16 lanes.
kernel::Kernel micro_kernel(int rows = 12, int columns = 2);

/// Independent chains of fma in registers only: the machine's peak. One repeat is 24 fma of 16 lanes.
kernel::Kernel peak_kernel();

}  // namespace lathe::testing
