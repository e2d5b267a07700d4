#pragma once

#include "ir/kernel/kernel.h"

/// The verifier's rules for arithmetic. Requires operands in scope, of the operation's arity.
namespace lathe::kernel {

/// Checks that a constant is a value of its type (constant_range).
void verify_constant(const Kernel& kernel, const Instruction& in);
/// Checks that the op is defined on its operands' type (scalar_type, storage_type), and that operands and result have
/// consistent types (type).
void verify_scalar(const Kernel& kernel, const Instruction& in);
/// Checks that the op can reduce the lanes of a vector (reduce_op).
void verify_reduction(const Kernel& kernel, const Instruction& in);

}  // namespace lathe::kernel
