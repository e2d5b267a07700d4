#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/fusion/attention/attention_delta.h"
#include "passes/fusion/fusion.h"

namespace lathe {

/// An attention, found by the roles of its nodes: contractions that compute scores over rows and columns, then
/// point-wise nodes and reductions along the rows, then contractions that sum the results over columns (the result,
/// dQ) or over rows (dK, dV). Its form does not matter: the search looks through views, transposes and masks, and
/// finds forward and backward passes by the same rule. No value over rows and columns must be kept outside such a
/// group.
struct AttentionGroup {
  Shape domain;                        ///< outer dims and the row dim in some order, then the columns
  int row = 0;                         ///< domain dim of the rows
  std::vector<int> sequential;         ///< outer dims that a contraction over rows also sums over
  std::vector<int> accumulated;        ///< other outer dims that one of the `sums` goes over
  std::vector<ir::ValueId> members;    ///< in topological order, with the contractions that compute scores
  std::vector<ir::ValueId> consumers;  ///< contractions that read a member
  std::vector<ir::ValueId> sums;       ///< reductions of a member over outer dims: the gradient of a shared bias
  std::vector<ir::ValueId> inlined;    ///< point-wise nodes that members compute themselves: masks, biases
  std::map<ir::ValueId, std::vector<int>> dims;   ///< by member: the domain dim of each of its dims, -1 for size 1
  std::map<ir::ValueId, std::vector<int>> space;  ///< the same for its index space
};

/// The outcome for a softmax: an exp that is summed along a row.
struct AttentionReport {
  ir::ValueId softmax;  ///< the sum
  /// Whether a matmul outside of gradients reads the exp, point-wise; a loss has no such matmul.
  bool attention = false;
  bool fused = false;
  ir::ValueId at;      ///< the node at which the first condition fails
  std::string reason;  ///< this condition, in words
};

struct AttentionSearch {
  std::vector<AttentionGroup> groups;
  std::vector<AttentionReport> reports;  ///< one per softmax of the graph, in order
  /// Exponentials between matmuls that no row sums: those of a gate, as in SwiGLU. They are not attention.
  std::vector<ir::ValueId> gates = {};
};

struct AttentionSearchOptions {
  OuterReductions sums = OuterReductions::none;
  /// Do not fuse attentions that are faster as separate kernels.
  std::optional<AttentionCostModel> costs = {};
  /// Also find attentions with few rows: one query, as in a decode step, or the few queries that share their keys.
  /// For targets whose kernel for this case has lanes along the columns.
  bool decode = false;
  std::optional<AttentionDelta> delta = {};  ///< compute sums of weight times gradient from results
};
/// Finds the attentions of a graph of primitives (as plan_fusion accepts it).
AttentionSearch find_attention(const ir::Graph& graph, const AttentionSearchOptions& options = {});

/// Where a consumer reads a member: the operand number, and the domain dim of each dim of that operand (-1: size 1).
struct MemberOperand {
  int operand = 0;
  ir::ValueId member;
  std::vector<int> dims;
};
/// Returns nothing if no operand, or both, are affine views of a member.
std::optional<MemberOperand> member_operand(const ir::Graph& graph, const AttentionGroup& group,
                                            ir::ValueId consumer);

/// Applies sums_from_results (attention_delta.h) to the products of attentions, with `options.delta`.
ir::Graph attention_sums(const ir::Graph& prepared, const AttentionSearchOptions& options);
/// Lets the backward pass compute scores and weights again from what the forward pass keeps of each row, so that
/// neither stores them: copies of the forward group's members for the readers that come after the group. Only if
/// these readers form groups of their own.
ir::Graph recompute_scores(ir::Graph prepared, const AttentionSearchOptions& options = {});
/// Prepares the attentions of a graph for fusion: attention_sums() with `delta`, then recompute_scores().
ir::Graph recompute_attention(ir::Graph prepared, const AttentionSearchOptions& options = {});

}  // namespace lathe
