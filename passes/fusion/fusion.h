#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/machine/cpu_info.h"
#include "passes/fusion/affine.h"
#include "passes/fusion/attention/result_dots.h"
#include "passes/fusion/region_kind.h"

namespace lathe {

struct AttentionSearch;  // passes/fusion/attention/fuse_attention.h

/// Nodes that become one kernel (a product also packs its operands first). The domain is the index space that the
/// kernel runs over: the shape of the element-wise nodes, of the contraction's result, or of the reduced operand.
struct Region {
  RegionKind kind = RegionKind::rows;
  Shape domain;
  int inner = 0;                     ///< rows: how many trailing dims its reductions fold; 0 without reductions
  std::vector<ir::ValueId> members;  ///< in topological order; the first is the contraction, reduction or scatter
  /// attention: a rows region with what lies over rows and columns, then a product region for each contraction that
  /// reads it, with its epilogue; `members` has them all.
  std::vector<Region> parts = {};
  int row = -1;                      ///< attention: the domain dim of the rows
  std::vector<int> sequential = {};  ///< attention: outer dims that a part sums over as well
  /// attention: outer dims that only reductions among the members go over, which add to what they store
  std::vector<int> accumulated = {};
  // While the plan is made, a product that sums values of an attention region is a region of its own.
  int output_of = -1;                     ///< product: that attention region
  std::vector<int> output_products = {};  ///< attention: those products
};

/// Which nodes run together, which are computed again wherever they are read, and which results are kept in memory.
/// The graph stays as it is: fusion is this partition of its nodes.
struct FusionPlan {
  std::vector<Region> regions;          ///< in an order in which they can run
  std::vector<int> region_of;           ///< by node: its region; -1 for arguments, views and inlined nodes
  std::vector<bool> inlined;            ///< by node: computed by its readers
  std::vector<bool> stored;             ///< by node: has a buffer
  std::vector<std::vector<int>> dims;   ///< by member: the domain dim of each of its dims; -1 where its size is 1
  std::vector<std::vector<int>> space;  ///< the same for its index space, which is its operand's for a reduction
  std::vector<Placement> placement;     ///< by node
  std::vector<bool> last_reader_first;  ///< by update: all readers of the old state run before the new one is written
  std::shared_ptr<const AttentionSearch> attentions;  ///< what was found of them; null where none were looked for

  int region(ir::ValueId id) const { return region_of[static_cast<std::size_t>(id.index)]; }
  bool is_inlined(ir::ValueId id) const { return inlined[static_cast<std::size_t>(id.index)]; }
  bool is_stored(ir::ValueId id) const { return stored[static_cast<std::size_t>(id.index)]; }
  const std::vector<int>& member_dims(ir::ValueId id) const { return dims[static_cast<std::size_t>(id.index)]; }
  const std::vector<int>& space_dims(ir::ValueId id) const { return space[static_cast<std::size_t>(id.index)]; }
};

/// Which sums over outer dims of an attention are made in it: gradients of biases that these dims share. Machines
/// that add to what they store round f32 and f64 alone as the graph does.
enum class OuterReductions : std::uint8_t { none, f32_and_f64, all };

/// Partitions a graph of primitives (no composites, no complex values; every output and update is a computed node and
/// every reduction folds either trailing dims or none of them: passes/fusion/prepare/prepare_for_fusion.h sees to
/// that; InternalError where it is not so).
struct FusionOptions {
  bool attention = false;  ///< make attention regions
  OuterReductions attention_sums = OuterReductions::none;
  std::optional<CpuInfo> attention_costs = {};           ///< but not where that is slower there: see attention_cost.h
  bool attention_few_rows = false;                       ///< attentions of few rows too: see AttentionOptions
  std::optional<ResultDots> attention_result_dots = {};  ///< sums of rows come from results: the same
  std::int64_t most_columns = 0;  ///< rows regions sum so many over their rows on the way: see join_columns.h
  bool scatter_in_place = false;  ///< let a scatter_add add to a value where it lies: see scatter_base.h
  bool row_sums = false;          ///< let readers of a scatter_add sum its updates: see row_sums.h
  /// Store what products of bf16 and f16 multiply where more rows than so many read it: see copied_operands.h. 0: no.
  std::int64_t copied_operands = 0;
  /// By node: copies made just before the readers that want them late. They join no region without such a copy, which
  /// would compute them early. Empty: none.
  std::vector<bool> recomputed = {};
};
FusionPlan plan_fusion(const ir::Graph& graph, const FusionOptions& options = {});

/// Takes regions without members out and renumbers the others.
void drop_empty_regions(FusionPlan& plan);

/// Whether a reduction folds only trailing dims (those of size 1 aside).
bool folds_trailing_dims(const ir::Graph& graph, const ir::Node& reduce);
/// Whether a node is a Reduce that combines by `op`.
bool reduces_by(const ir::Node& node, ScalarOp op);
/// The dims that a Reduce node folds, counted from 0, sorted.
std::vector<int> reduced_dims(const ir::Graph& graph, const ir::Node& reduce);

/// A constant with one value in every element.
bool is_splat(const ir::Node& node);

}  // namespace lathe
