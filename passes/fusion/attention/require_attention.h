#pragma once

#include "ir/tensor/graph.h"
#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

/// Throws [attention_unfused] for the first attention of a graph (as returned by recompute_attention) that is not
/// fused: the condition that fails, its node and source line. A softmax whose weights no matmul sums is not an
/// attention.
void require_fused_attention(const ir::Graph& prepared, const AttentionSearchOptions& options = {});

}  // namespace lathe
