#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/fusion/attention/result_dots.h"
#include "passes/fusion/fusion.h"

namespace lathe {

/// Attention, found by role: contractions that make scores over rows and columns, point-wise nodes and reductions
/// along the rows behind them, and contractions that sum what came out over columns (the result, dQ) or over rows
/// (dK, dV). How it is written does not matter: views, transposes and masks are looked through, and forward and
/// backward are found by the same rule. No value over rows and columns needs to be kept outside such a group.
struct AttentionGroup {
  Shape domain;                        ///< outer dims and the row dim in some order, then the columns
  int inner = 1;                       ///< how many trailing dims are columns
  int row = 0;                         ///< the domain dim of the rows
  std::vector<int> sequential;         ///< outer dims that a contraction over rows sums over too
  std::vector<int> accumulated;        ///< other outer dims that one of the `sums` goes over
  std::vector<ir::ValueId> members;    ///< in topological order, contractions that make scores among them
  std::vector<ir::ValueId> consumers;  ///< contractions that read a member
  std::vector<ir::ValueId> sums;       ///< reductions of a member over outer dims: the gradient of a shared bias
  std::vector<ir::ValueId> inlined;    ///< point-wise nodes that members compute for themselves: masks, biases
  std::map<ir::ValueId, std::vector<int>> dims;   ///< by member: the domain dim of each of its dims, -1 for size 1
  std::map<ir::ValueId, std::vector<int>> space;  ///< the same for its index space
};

/// What happened to a softmax: an exp that is summed along a row.
struct AttentionReport {
  ir::ValueId softmax;     ///< the sum
  bool attention = false;  ///< a product that is no gradient reads the exp, point-wise; a loss has none
  bool fused = false;
  ir::ValueId at;      ///< where the first condition fails
  std::string reason;  ///< which one, in words
};

struct AttentionSearch {
  std::vector<AttentionGroup> groups;
  std::vector<AttentionReport> reports;  ///< one for each softmax of the graph, in order
  /// Exponentials between products where no row has their sum: a gate's, as in SwiGLU. They are no attention.
  std::vector<ir::ValueId> gates = {};
};

struct AttentionOptions {
  OuterReductions sums = OuterReductions::none;
  std::optional<CpuInfo> costs = {};  ///< leave alone what is faster one by one there
  /// Also attentions of few rows: of one query, as a step of generation has it, or of the few that share their keys.
  /// For machines whose kernel has lanes along the columns there.
  bool few_rows = false;
  std::optional<ResultDots> result_dots = {};  ///< take sums of weight times gradient from results
};
/// Finds the attentions of a graph of primitives (as plan_fusion takes it).
AttentionSearch find_attention(const ir::Graph& graph, const AttentionOptions& options = {});

/// Where a consumer reads a member: the operand number, and the domain dim of each of that operand's dims (-1: size
/// 1).
struct MemberOperand {
  int operand = 0;
  ir::ValueId member;
  std::vector<int> dims;
};
/// Nothing where no operand, or both, show a member through affine views.
std::optional<MemberOperand> member_operand(const ir::Graph& graph, const AttentionGroup& group,
                                            ir::ValueId consumer);

/// Applies sums_from_results (result_dots.h) to the products of attentions, with `options.result_dots`.
ir::Graph attention_sums(const ir::Graph& prepared, const AttentionOptions& options);
/// Lets the backward pass compute scores and weights again from what the forward pass keeps of each row, so that
/// neither stores them: copies of the forward group's members for the readers that come after the group. Only if
/// these readers form groups of their own.
ir::Graph recompute_scores(ir::Graph prepared, const AttentionOptions& options = {});
/// Prepares the attentions of a graph for fusion: attention_sums() with `result_dots`, then recompute_scores().
ir::Graph recompute_attention(ir::Graph prepared, const AttentionOptions& options = {});

}  // namespace lathe
