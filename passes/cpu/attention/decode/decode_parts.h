#pragma once

#include <vector>

#include "passes/cpu/attention/attention_output.h"
#include "passes/cpu/cpu_context.h"
#include "passes/lowering/attention/attention_program.h"
#include "passes/lowering/attention/online_softmax.h"

namespace lathe::cpu {

/// Partial results of each row by parts of the columns. Part p of outer index o stores row r at (o * parts + p) *
/// rows + r.
struct DecodeParts {
  int count = 1;
  int statistics = -1;    ///< workspace: the maximum of a part, then its sums
  std::vector<int> sums;  ///< one workspace per output matmul: [.., depth], rows padded to whole vectors
  DType dtype = f32;

  int numbers(const OnlineSoftmax& softmax) const { return 1 + static_cast<int>(softmax.sums.size()); }
};

/// Returns the kernel that combines the parts in order: sums times exp(maximum of the part - maximum of all).
KernelContext::Built combine_decode_parts(const CpuContext& lowering, AttentionProgram& attention,
                                          const OnlineSoftmax& softmax, const DecodeParts& parts, int rows);

/// Returns the maximum to subtract: 0 instead of -inf, so that exponentials are 0 and not NaN.
kernel::Value subtracted_maximum(kernel::Builder& b, kernel::Value most);

}  // namespace lathe::cpu
