#pragma once

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Throws InternalError ("kernel <name>: ... [label]") where the kernel breaks a rule; docs/kernel-ir.md lists the
/// rules by label. Only schedules make kernels, so a failure is a defect of Lathe.
void verify(const Kernel& kernel);

}  // namespace lathe::kernel
