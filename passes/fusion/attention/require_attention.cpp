#include "passes/fusion/attention/require_attention.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe {

using namespace ir;

void require_fused_attention(const Graph& prepared, const AttentionSearchOptions& options) {
  for (const AttentionReport& report : find_attention(prepared, options).reports) {
    if (!report.attention || report.fused) continue;
    const Node& at = prepared[report.at];
    throw UserError(prepared[report.softmax].loc, "softmax",
                    fmt::format("this attention is not fused: {} (%{} {} at {})", report.reason, report.at.index,
                                at.op->name.value, at.loc.to_string()),
                    "attention_unfused", "change the expression there, or do not require fused attention");
  }
}

}  // namespace lathe
