#pragma once

#include "ir/kernel/interpret/decoded_kernel.h"

namespace lathe::kernel {

/// Sets `in_any_order` of all statements of a decoded block.
void mark_thread_order(const Kernel& kernel, DecodedBlock& block);

}  // namespace lathe::kernel
