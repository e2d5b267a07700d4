#pragma once

#include <vector>

#include "passes/cpu/attention/attention_output.h"
#include "passes/lowering/attention/attention_program.h"
#include "passes/lowering/attention/online_softmax.h"

namespace lathe::cpu {

/// What parts of the columns leave of each row: of part p of outer index o at row (o * parts + p) * rows + r.
struct FewRowsParts {
  int count = 1;
  int statistics = -1;    ///< workspace: the maximum of a part, then its other sums
  std::vector<int> sums;  ///< workspaces by output product: [.., depth], rows of whole vectors
  DType dtype = f32;

  int numbers(const OnlineSoftmax& softmax) const { return 1 + static_cast<int>(softmax.sums.size()); }
};

/// The kernel that combines the parts: sums times exp(maximum of the part - maximum of all), one part after the
/// other.
KernelContext::Built combine_few_rows(const LoweringContext& lowering, AttentionProgram& attention,
                                      const OnlineSoftmax& softmax, const FewRowsParts& parts, int rows);

/// Before a maximum is subtracted: -inf becomes 0, so that exponentials are zeros and not NaN.
kernel::Value subtracted_maximum(kernel::Builder& b, kernel::Value most);

}  // namespace lathe::cpu
