#pragma once

#include "ir/kernel/interpret/decoded_kernel.h"

namespace lathe::kernel {

/// Returns the function that computes an instruction other than a constant, dim, loop index, load or intrinsic. Each
/// scalar op has one function per dtype of its operands, so that a lane costs no dispatch.
LaneFunction lane_function(const Kernel& kernel, const Instruction& in);

/// Copies operand a.
void copy_lanes(const DecodedStatement& statement, Scalar* lanes);

}  // namespace lathe::kernel
