#pragma once

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Checks that, on every path from the start of a matmul into a variable to a wait for it, only further matmuls use
/// the variable, and that no matmul is in flight at the end of the outermost intrinsic region (sums_under_way). In a
/// intrinsic region, only copies may write matmul operands (mma_operands).
void verify_sums(const Kernel& kernel);

}  // namespace lathe::kernel
