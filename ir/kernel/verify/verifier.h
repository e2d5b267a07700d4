#pragma once

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Throws InternalError ("kernel <name>: ... [label]") if the kernel breaks a rule; docs/kernel-ir.md lists the rules
/// by label. Only schedules build kernels, so a failure is a bug in Lathe.
void verify(const Kernel& kernel);

}  // namespace lathe::kernel
