#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/cpu/attention/attention_scratch.h"
#include "passes/lowering/attention/attention_program.h"

namespace lathe::cpu {

/// Returns the values that output matmuls read as bf16.
std::set<int> bf16_results(const AttentionProgram& attention);

/// The matmuls of an attention kernel: those that compute scores, and those that sum the results.
class AttentionProducts {
 public:
  using Scores = std::vector<std::unique_ptr<AttentionScore>>;
  using Outputs = std::vector<std::unique_ptr<AttentionOutput>>;
  using Range = std::pair<kernel::Value, kernel::Value>;  ///< [first, last)

  /// `tile`: see AttentionScore. The other arguments must outlive this object.
  AttentionProducts(KernelContext& context, const CpuContext& lowering, const AttentionProgram& attention,
                    const RegisterTile& tile);

  const Scores& scores() const { return scores_; }
  const Outputs& outputs() const { return outputs_; }
  /// Visit the output matmuls that sum over rows, or over columns.
  void over_rows(const std::function<void(AttentionOutput&)>& body) const;
  void over_columns(const std::function<void(AttentionOutput&)>& body) const;
  /// Visits rows and columns of each score, then the other operand of each output.
  void for_each_operand(const std::function<void(OperandLoader&)>& body) const;

  Multiplier multiplier() const;
  /// Returns the programs of operands and epilogues.
  std::vector<const ElementwiseProgram*> programs() const;

  /// Allocates the sums of split bf16, if any. Must be called before allocate().
  void allocate_split_sums(AttentionScratch& scratch);
  void allocate(AttentionScratch& scratch);

  /// Stages the operands of one outer index that are read by column, unless they are read in place.
  void stage(kernel::Value outer, kernel::Value columns) const;
  /// Returns an upper bound of the scores of `rows` with all `columns` columns.
  kernel::Value largest_score(kernel::Value outer, const Range& rows, kernel::Value columns) const;

 private:
  bool splits_bf16() const;

  KernelContext& context_;
  const AttentionProgram& attention_;
  int lanes_;
  Scores scores_;
  Outputs outputs_;
  std::optional<SplitBf16Sums> exact_;
};

}  // namespace lathe::cpu
