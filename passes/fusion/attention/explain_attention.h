#pragma once

#include <functional>
#include <string>

#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

/// Tells for every softmax of a graph of primitives (as lower takes it) whether it is fused with the products around
/// it, and what its kernels keep in memory, or why it is not: the condition that fails first, at which node, on which
/// source line.
///
///   softmax at mha.cpp:22: fused
///     forward over [nbatches, h=8, n_seq, n_seq]: 1 product makes scores, 1 sums the weights
///       kept of each row: %14 max, %17 sum
///   softmax at mha.cpp:30: not fused
///     it reads the weights through a reshape or a slice, or with both operands (%31 contract at mha.cpp:31)
///
/// `costs`: what is faster one by one on a CPU is left alone; none where fusion is required.
std::string explain_attention(const ir::Graph& graph, AttentionCosts costs = AttentionCosts::vectors);

/// A machine that attentions are told for: how its schedules look for them, and what more there is to tell, line by
/// line, of one that is fused in the prepared graph.
struct AttentionMachine {
  AttentionOptions search;
  std::function<std::string(const ir::Graph&, const AttentionGroup&)> tell = nullptr;
};
std::string explain_attention(const ir::Graph& graph, const AttentionMachine& machine);

/// Throws [attention_unfused] at the first attention of a graph (as recompute_attention gives it) that is not fused:
/// the condition that fails, its node and source line. A softmax whose weights no product sums is no attention.
void require_fused_attention(const ir::Graph& prepared);
/// The same as a pass, "require-attention".
ir::Pass require_attention_pass();

}  // namespace lathe
