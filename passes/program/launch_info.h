#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/fusion/region_kind.h"

namespace lathe {

/// What a kernel does for its region.
enum class KernelRole : std::uint8_t {
  elementwise,
  row_reduction,
  combine_row_splits,
  row_update,
  column_reduction,
  combine_columns,  ///< of chunks of rows, or splits
  scatter_sort,     ///< the positions of each row's updates, on GPUs in chunks
  scatter_link,     ///< runs of equal indices, from chunk to chunk
  scatter_add,
  clear,
  scan,   ///< sums along a dim
  sort,   ///< of rows
  top_k,  ///< the best of rows
  pack_left,
  pack_right,
  product,
  combine_splits,     ///< the parts of a split-K product
  attention,          ///< its rows; of CPUs all of it
  attention_bounds,   ///< the largest elements of operands: which tiles may be skipped
  attention_rows,     ///< products over columns by themselves (dQ)
  attention_columns,  ///< products over rows (dK, dV)
  attention_outer_reductions,
  copy_rows,   ///< of which some are then replaced
  copy,        ///< of a new state over the old one
  fold_ranks,  ///< what came from the processes of a mesh axis, in their order
};
/// In words: "matrix product", "pack left operand".
std::string_view words(KernelRole role);

/// What multiplies in a kernel.
enum class Multiplier : std::uint8_t {
  none,
  fma,
  dot_pairs,   ///< of pairs of bf16
  tile_mma,    ///< AMX, of bf16
  split_bf16,  ///< AMX, of f32 as sums of bf16
  mma,         ///< tensor cores, by warps
  wgmma,       ///< tensor cores, by warpgroups
};
/// In words: "dot products of pairs of bf16", "tensor cores", "warpgroups".
std::string_view words(Multiplier multiplier);
bool is_tensor_core(Multiplier multiplier);

/// A faster way that a schedule did not take.
struct MissedPath {
  Multiplier path = Multiplier::none;
  std::string why;

  std::string to_string() const;  ///< "not by warpgroups: its keys are computed, or no boxes that TMA copies"
};

/// A node that a launch computes, alone or with other launches of its region.
struct LaunchOp {
  ir::ValueId value = {};      ///< of the lowered graph; none for the copy of a state
  const ir::Op* op = nullptr;  ///< null for a copy
  std::string name = {};       ///< of the node, or the state
  Location loc = {};

  std::string_view op_name() const;  ///< "softmax", "copy"
  std::string to_string() const;     ///< "%5 softmax weights", "copy wte"
};

/// What a launch does, and for whom, as its schedule and the lowering say it.
struct LaunchInfo {
  KernelRole role = KernelRole::elementwise;
  Multiplier multiplier = Multiplier::none;
  std::vector<MissedPath> missed = {};
  std::optional<RegionKind> kind = {};  ///< of the region; none for the copy of a state
  int region = -1;                      ///< its number in the plan; copies are numbered on from there
  std::vector<LaunchOp> ops = {};       ///< of the region, in topological order
};

}  // namespace lathe
