#pragma once

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Between the start of a product that is added to a variable and a wait for it only further products use the
/// variable, whatever way a thread takes, and none is under way at the end of the outermost machine region
/// (sums_under_way). In a machine region copies alone write what products read (mma_operands).
void verify_sums(const Kernel& kernel);

}  // namespace lathe::kernel
