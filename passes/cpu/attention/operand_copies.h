#pragma once

#include "passes/lowering/attention/attention_operand.h"

namespace lathe::cpu {

/// A matrix in per-thread scratch. Its rows start at multiples of a vector.
struct ScratchMatrix {
  kernel::Buffer buffer;
  kernel::Value stride;  ///< elements from one row to the next
};

/// Copies positions first .. first + count of an operand to the matrix; the depth of each position is contiguous.
void copy_to(OperandLoader& operand, const ScratchMatrix& matrix, kernel::Value outer, kernel::Value first,
             kernel::Value count, int lanes);
/// Copies the positions as bf16 pairs, matrix[position / 2][depth][2]. An odd last position is paired with zeros. The
/// depth must be known, and matrix.stride is a whole number of vectors.
void pairs_to(OperandLoader& operand, const ScratchMatrix& matrix, kernel::Value outer, kernel::Value first,
              kernel::Value count, int lanes);

}  // namespace lathe::cpu
