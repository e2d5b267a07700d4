#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// A CUDA C++ expression for a value.
struct Expression {
  std::string text;
  bool operation = false;  ///< an infix operation, which needs parentheses as an operand
};

/// Returns the expression of an instruction that accesses no memory; `args` are its operands. Floats and vectors use
/// infix operators; integer scalars use the wrapping functions of lathe.cuh. `in_int32`: i64 operands and results fit
/// 32 bits and are computed in i32. They do not wrap, so they use infix operators too.
Expression expression(const kernel::Kernel& kernel, const kernel::Instruction& in, std::span<const Expression> args,
                      bool in_int32 = false);

/// Returns whether a value may be computed at its use instead of at its statement.
bool is_pure(const kernel::Instruction& in);

}  // namespace lathe::cuda
