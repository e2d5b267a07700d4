#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_operand.h"

namespace lathe {

/// The matmuls and dims of an attention region, found before any kernel code is emitted.
struct AttentionParts {
  /// A matmul that computes scores.
  struct Score {
    int value = -1;  ///< its accumulator in the elementwise program
    AttentionOperand rows, columns;
    Dim depth = 1;         ///< size of the contracted dims
    bool is_bf16 = false;  ///< both operands are bf16
    bool pairs = false;    ///< multiplies with CpuInfo::dot_pairs: bf16 operands, and the depth is known and even
  };
  /// A matmul that computes an output of the attention: result[row] = sum over columns of value * other[column], or
  /// result[column] = sum over rows of value * other[row].
  struct OutputProduct {
    ir::ValueId node;
    int value = -1;                   ///< instruction of the elementwise program that it reads
    std::optional<int> divisor = {};  ///< row value that divides the sums: see softmax_divisor.h
    bool over_rows = false;
    AttentionOperand other;
    bool is_bf16 = false;  ///< both operands are bf16; always false if `value` is a raw score (f32 until the program
                           ///< rounds it)
    bool pairs = false;    ///< multiplies with CpuInfo::dot_pairs: bf16 operands and a known depth
    Dim depth = 1;         ///< size of the free dims of `other`
    ElementwiseProgram epilogue;                             ///< on the result, which is instruction 0
    std::vector<int> outer_dims, position_dims, depth_dims;  ///< of the result
  };

  int row_dim = 0, columns_dim = 0;  ///< of the domain
  std::vector<int> outer;        ///< the other dims: parallel, then accumulated, then sequential; flattened into one
                                 ///< outer index
  std::vector<int> result_dims;  ///< outer dims that sums over rows keep: all but the sequential ones
  Dim parallel = 1, accumulated = 1, sequential = 1;  ///< number of outer indices of each kind
  DType compute = f32;
  std::vector<Score> scores;
  std::vector<OutputProduct> outputs;

  bool sums_over_rows() const;
};

/// Decomposes an attention region. `program` is the elementwise program of the region's rows part.
AttentionParts attention_parts(const LoweringContext& lowering, const Region& region,
                               const ElementwiseProgram& program);

/// Which of the region's output matmuls a kernel computes.
enum class OutputProducts { all, over_columns, over_rows };
/// Returns the parts of a kernel that has only the `wanted` output matmuls. If all of them sum over rows, all outer
/// dims except the sequential ones run in parallel. If all of them sum over columns, only rows and the parallel dims
/// do.
AttentionParts parts_with(AttentionParts parts, OutputProducts wanted);

}  // namespace lathe
