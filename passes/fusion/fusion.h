#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/fusion/affine.h"
#include "passes/fusion/attention/attention_delta.h"
#include "passes/fusion/attention/attention_rates.h"
#include "passes/fusion/few_rows/row_operands.h"
#include "passes/fusion/regions/fused_region.h"

namespace lathe {

struct AttentionSearch;  // passes/fusion/attention/fuse_attention.h

/// Which nodes run together, which are recomputed by each reader, and which results are stored. The graph is not
/// changed: fusion is a partition of its nodes.
struct FusionPlan {
  std::vector<Region> regions;  ///< in an order in which they can run
  ir::NodeMap<int> region_of;   ///< -1 for arguments, views and inlined nodes
  ir::NodeMap<bool> inlined;    ///< whether its readers compute it
  ir::NodeMap<bool> stored;     ///< whether it has a buffer
  /// By member: the domain dim of each of its dims; -1 if its size is 1.
  ir::NodeMap<std::vector<int>> dims;
  /// By member: the same for its index space, for a reduction that of its operand.
  ir::NodeMap<std::vector<int>> space;
  ir::NodeMap<Placement> placement;
  /// By update: whether all readers of the old state run before the new one is written.
  std::vector<bool> last_reader_first;
  /// The result of the search for attentions; null without a search.
  std::shared_ptr<const AttentionSearch> attentions;

  FusionPlan() = default;
  /// Every value is placed, and none is in a region, inlined or stored.
  explicit FusionPlan(const ir::Graph& graph)
      : region_of(graph, -1),
        inlined(graph, false),
        stored(graph, false),
        dims(graph),
        space(graph),
        placement(placements(graph)) {}

  int region(ir::ValueId id) const { return region_of[id]; }
  bool is_inlined(ir::ValueId id) const { return inlined[id]; }
  bool is_stored(ir::ValueId id) const { return stored[id]; }
  const std::vector<int>& member_dims(ir::ValueId id) const { return dims[id]; }
  const std::vector<int>& space_dims(ir::ValueId id) const { return space[id]; }
};

/// Which sums over outer dims an attention computes: gradients of biases that these dims share. Targets that
/// accumulate in memory round like the graph only for f32 and f64.
enum class OuterReductions : std::uint8_t { none, f32_and_f64, all };

/// Options of plan_fusion, which partitions a graph of primitives. The graph has no composites and no complex values,
/// every output and update is a computed node, and every reduction folds either trailing dims or none of them.
/// passes/fusion/prepare/prepare_for_fusion.h ensures this; otherwise plan_fusion throws InternalError.
struct FusionOptions {
  bool attention = false;  ///< create attention regions
  OuterReductions attention_sums = OuterReductions::none;
  std::optional<AttentionCostModel> attention_costs = {};  ///< unless that is slower: see attention_cost.h
  bool attention_decode = false;                       ///< also attentions with few rows: see AttentionSearchOptions
  std::optional<AttentionDelta> attention_delta = {};  ///< sums of rows come from results: see AttentionSearchOptions
  /// Maximum number of columns that rows regions sum over their rows in the same pass: see join_columns.h.
  std::int64_t most_columns = 0;
  bool scatter_in_place = false;  ///< let a scatter_add add to a value in place: see scatter_base.h
  bool row_sums = false;          ///< let readers of a scatter_add sum its updates: see row_sums.h
  /// Store the operands of bf16 and f16 matmuls that more than this number of rows read: see copied_operands.h. 0:
  /// never.
  std::int64_t copied_operands = 0;
  /// Maximum number of reads that a region gathers element by element: see regions/gathered_reads.h. Empty: no limit.
  std::optional<int> most_gathers = {};
  RowOperandLimits row_operands = {};  ///< let matmuls of few rows compute these rows: see row_operands.h
  /// Copies that are made just before readers that need them late. They join no region without such a copy, which
  /// would compute them early. Empty: none.
  ir::NodeMap<bool> recomputed = {};
};
FusionPlan plan_fusion(const ir::Graph& graph, const FusionOptions& options = {});

/// Removes regions without members and renumbers the others. Returns the new number of each region, -1 if removed.
std::vector<int> drop_empty_regions(FusionPlan& plan);

/// Whether a reduction folds only trailing dims (ignoring those of size 1).
bool folds_trailing_dims(const ir::Graph& graph, const ir::Node& reduce);
/// Whether a node is a Reduce that combines by `op`.
bool reduces_by(const ir::Node& node, ScalarOp op);
/// Returns the dims that a Reduce node folds, counted from 0, sorted.
std::vector<int> reduced_dims(const ir::Graph& graph, const ir::Node& reduce);

/// Whether a node is a constant with one value in every element.
bool is_splat(const ir::Node& node);

}  // namespace lathe
