#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/attention/attention_operand.h"

namespace lathe {

/// What an attention region consists of, before any code is written.
struct AttentionParts {
  /// A product that makes scores.
  struct Score {
    int value = -1;  ///< its accumulator in the elementwise program
    AttentionOperand rows, columns;
    Dim depth = 1;         ///< what it sums over
    bool is_bf16 = false;  ///< both operands are bf16
    bool pairs = false;    ///< it multiplies by CpuInfo::dot_pairs: bf16, of a known even depth
  };
  /// A product that makes an output of the attention: result[row] = sum over columns of value * other[column], or
  /// result[column] = sum over rows of value * other[row].
  struct OutputProduct {
    ir::ValueId node;
    int value = -1;                   ///< what it reads, in the elementwise program
    std::optional<int> divisor = {};  ///< a row value that divides its sums: see softmax_divisor.h
    bool over_rows = false;
    AttentionOperand other;
    bool is_bf16 = false;  ///< both operands are bf16; scores themselves are not, until the program rounds them
    bool pairs = false;    ///< it multiplies by CpuInfo::dot_pairs: bf16, of a known depth
    Dim depth = 1;         ///< what it spreads out
    ElementwiseProgram epilogue;                             ///< over the result, which is instruction 0
    std::vector<int> outer_dims, position_dims, depth_dims;  ///< of the result
  };

  int row_dim = 0, columns_dim = 0;  ///< of the domain
  std::vector<int> outer;        ///< the other dims: parallel, accumulated, sequential ones; one index counts them
  std::vector<int> result_dims;  ///< of these, those that sums over rows keep: all but the sequential ones
  Dim parallel = 1, accumulated = 1, sequential = 1;  ///< how many outer indices of each kind
  DType compute = f32;
  std::vector<Score> scores;
  std::vector<OutputProduct> outputs;

  bool sums_over_rows() const;
};

/// Takes a region of kind attention apart. `program` is that of its rows part.
AttentionParts attention_parts(const LoweringContext& lowering, const Region& region,
                               const ElementwiseProgram& program);

/// Which output products a kernel has.
enum class OutputProducts { all, over_columns, over_rows };
/// The parts of a kernel that has these output products alone. Where all sum over rows, all outer dims but the
/// sequential ones run in parallel; where all sum over columns, only rows and the parallel dims do.
AttentionParts parts_with(AttentionParts parts, OutputProducts wanted);

}  // namespace lathe
