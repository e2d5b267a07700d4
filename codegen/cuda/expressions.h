#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// A piece of CUDA C++ that stands for a value.
struct Expression {
  std::string text;
  bool operation = false;  ///< an infix operation, which wants parentheses inside another
};

/// An instruction that touches no memory, of operands that are written as `args`. Floats and vectors are written
/// infix; integer scalars by the functions of lathe.cuh, which wrap. `in_int32`: operands and results of type i64 fit
/// 32 bits, and are written so; they do not wrap, so they are written infix too.
Expression expression(const kernel::Kernel& kernel, const kernel::Instruction& in, std::span<const Expression> args,
                      bool in_int32 = false);

/// Whether a value may be computed where it is used instead of where it stands.
bool is_pure(const kernel::Instruction& in);

}  // namespace lathe::cuda
