#pragma once

#include "passes/lowering/attention/attention_operand.h"

namespace lathe::cpu {

/// A matrix in the scratch that each thread has. Its rows begin at multiples of a vector.
struct ScratchMatrix {
  kernel::Buffer buffer;
  kernel::Value stride;  ///< elements from row to row
};

/// Copies positions first .. first + count of an operand to the matrix, the depth of each contiguous.
void copy_to(OperandLoader& operand, const ScratchMatrix& matrix, kernel::Value outer, kernel::Value first,
             kernel::Value count, int lanes);
/// The same, two and two: matrix[position / 2][depth][2] of bf16, a zero beside the last of an odd number. The depth
/// is known, matrix.stride whole vectors.
void pairs_to(OperandLoader& operand, const ScratchMatrix& matrix, kernel::Value outer, kernel::Value first,
              kernel::Value count, int lanes);

}  // namespace lathe::cpu
