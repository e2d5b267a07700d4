#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/fusion/regions/region_kind.h"

namespace lathe {

/// The role of a kernel within its region.
enum class KernelRole : std::uint8_t {
  elementwise,
  row_reduction,
  combine_row_splits,
  cache_append,
  column_reduction,
  combine_columns,  ///< of row chunks or splits
  scatter_sort,     ///< sorts the positions of each row's updates; on GPUs in chunks
  scatter_link,     ///< links runs of equal indices across chunks
  scatter_add,
  clear,
  scan,    ///< prefix sums or linear recurrences along a dim
  sort,    ///< of rows
  top_k,   ///< top k elements of rows
  factor,  ///< of matrices
  solve,   ///< of triangular systems
  pack_left,
  pack_right,
  product,
  combine_splits,       ///< sums the partial results of a split-K matmul
  attention,            ///< rows of an attention; on CPUs all of it
  attention_bounds,     ///< largest absolute values of operands, for the tile-skip check
  attention_rows,       ///< only matmuls that sum over columns (dQ)
  attention_columns,    ///< matmuls that sum over rows (dK, dV)
  attention_gradients,  ///< matmuls of both kinds (dK, dV, dQ)
  attention_totals,     ///< stores what blocks have added up (dQ)
  attention_outer_reductions,
  copy_rows,   ///< before some of them are replaced
  copy,        ///< of a new state value to the old one
  fold_ranks,  ///< values received from the processes of a mesh axis, in rank order
  phases,      ///< several launches, one after the other
};
/// Returns the role as text: "matrix product", "pack left operand".
std::string_view words(KernelRole role);

/// The instructions that a kernel multiplies with.
enum class Multiplier : std::uint8_t {
  none,
  fma,
  dot_pairs,   ///< dot products of bf16 pairs
  tile_mma,    ///< AMX, bf16
  split_bf16,  ///< AMX, f32 split into sums of bf16
  mma,         ///< tensor cores, per warp
  wgmma,       ///< tensor cores, per warpgroup
};
/// Returns the multiplier as text: "dot products of pairs of bf16", "tensor cores", "warpgroups".
std::string_view words(Multiplier multiplier);
bool is_tensor_core(Multiplier multiplier);

/// A faster path that a schedule did not use: a multiplier, or one kernel in place of several.
struct MissedPath {
  Multiplier path = Multiplier::none;  ///< none: one kernel
  std::string why;

  std::string to_string() const;  ///< "not by warpgroups: its keys are computed, or no boxes that TMA copies"
};

/// A node that a launch computes, alone or with other launches of its region.
struct LaunchOp {
  ir::ValueId value = {};      ///< in the lowered graph; invalid for the copy of a state
  const ir::Op* op = nullptr;  ///< null for a copy
  std::string name = {};       ///< name of the node or the state
  Location loc = {};

  std::string_view op_name() const;  ///< "softmax", "copy"
  std::string to_string() const;     ///< "%5 softmax weights", "copy wte"
};

/// Returns a node of a lowered graph as an op of a launch.
LaunchOp launch_op(const ir::Graph& graph, ir::ValueId id);

/// The role of a launch and the ops that it computes, set by its schedule and the lowering.
struct LaunchInfo {
  KernelRole role = KernelRole::elementwise;
  Multiplier multiplier = Multiplier::none;
  std::vector<MissedPath> missed = {};
  std::optional<RegionKind> kind = {};  ///< of the region; empty for the copy of a state
  int region = -1;                      ///< its number in the plan; copies are numbered after the regions
  std::vector<LaunchOp> ops = {};       ///< ops of the region, in topological order
};

}  // namespace lathe
