#pragma once

#include <optional>

#include "passes/fusion/attention_grower.h"

namespace lathe {

/// What an attention costs on a CPU, for one score (a row and a column), in multiply-adds at full speed; with its
/// backward pass where the graph has one. `fused`: strips of rows, the backward pass computing the scores again.
/// `plain`: products and softmax one by one, through memory. Estimated from sizes, fitted to measurements
/// (docs/performance/attention.md).
struct AttentionCost {
  double fused = 0, plain = 0;
};

/// Of a forward group. Nothing where there is nothing to choose: a size is not known, the scores take more than four
/// times the memory of rows of such depth (so what plain code stores grows linearly with the length), or the group
/// belongs to a backward pass, which follows its forward pass.
std::optional<AttentionCost> attention_cost(const AttentionSubject& subject, const AttentionGroup& group);

}  // namespace lathe
