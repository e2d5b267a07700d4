#pragma once

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Limit of the groups of matmuls that a wait may leave in flight, exclusive.
inline constexpr int most_sum_groups = 8;

/// Checks that, on every path from the start of a matmul into a variable to a wait for it, only further matmuls use
/// the variable; that a wait that leaves groups in flight finds at least as many groups after those of its variables;
/// and that no matmul is in flight at the end of the outermost intrinsic region (sums_under_way). In an intrinsic
/// region, only copies may write matmul operands (mma_operands).
void verify_sums(const Kernel& kernel);

/// Returns whether matmuls that a block starts may be in flight at its end.
bool leaves_sums(const Kernel& kernel, const Block& statements);

}  // namespace lathe::kernel
