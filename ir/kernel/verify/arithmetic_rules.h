#pragma once

#include "ir/kernel/kernel.h"

/// The verifier's rules for arithmetic. The operands are in scope, and as many as the operation takes.
namespace lathe::kernel {

/// A constant is a value of its type (constant_range).
void verify_constant(const Kernel& kernel, const Instruction& in);
/// A scalar op is defined on its operands' type (scalar_type, storage_type), which is one and gives the result's
/// (type).
void verify_scalar(const Kernel& kernel, const Instruction& in);
/// The lanes of a vector are combined by an op that can be (reduce_op).
void verify_reduction(const Kernel& kernel, const Instruction& in);

}  // namespace lathe::kernel
