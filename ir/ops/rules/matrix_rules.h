#pragma once

#include <cstdint>
#include <vector>

#include "ir/tensor/op/op.h"

/// Helpers of the records of ops over the matrices in the last two dims.
namespace lathe::ir::rules {

/// Requires operand `i` to be matrices of floats [.., m, n] [dtype_kind] [triangle_rank].
void require_matrices(const InferContext& ctx, int i);
/// Requires operand `i` to be square matrices of floats [.., n, n] [dtype_kind] [triangle_rank] [matrix_square].
void require_square(const InferContext& ctx, int i);

/// Returns the number of matrices in a tensor of these sizes.
std::int64_t matrices_in(const std::vector<std::int64_t>& sizes);
/// Returns the pairs of all dims before the last two of the result, for each of the operands.
std::vector<DimPair> batch_dims(const std::vector<int>& operands, int rank);

}  // namespace lathe::ir::rules
