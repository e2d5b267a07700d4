#include "passes/program/launch_info.h"

#include <fmt/core.h>

#include "ir/support/visible.h"
#include "ir/tensor/op/op.h"

namespace lathe {

std::string_view words(KernelRole role) {
  switch (role) {
    case KernelRole::elementwise: return "element-wise";
    case KernelRole::row_reduction: return "row reduction";
    case KernelRole::combine_row_splits: return "combine row splits";
    case KernelRole::cache_append: return "row update";
    case KernelRole::column_reduction: return "column reduction";
    case KernelRole::combine_columns: return "combine column sums";
    case KernelRole::scatter_sort: return "sort positions";
    case KernelRole::scatter_link: return "link indices";
    case KernelRole::scatter_add: return "scatter add";
    case KernelRole::clear: return "clear";
    case KernelRole::scan: return "scan";
    case KernelRole::sort: return "sort";
    case KernelRole::top_k: return "top k";
    case KernelRole::factor: return "triangular factor";
    case KernelRole::solve: return "triangular solve";
    case KernelRole::pack_left: return "pack left operand";
    case KernelRole::pack_right: return "pack right operand";
    case KernelRole::product: return "matrix product";
    case KernelRole::combine_splits: return "combine split-K parts";
    case KernelRole::attention: return "attention";
    case KernelRole::attention_bounds: return "attention bounds";
    case KernelRole::attention_rows: return "attention rows";
    case KernelRole::attention_columns: return "attention columns";
    case KernelRole::attention_totals: return "attention totals";
    case KernelRole::attention_gradients: return "attention gradients";
    case KernelRole::attention_outer_reductions: return "attention outer reductions";
    case KernelRole::copy_rows: return "copy rows";
    case KernelRole::copy: return "copy";
    case KernelRole::fold_ranks: return "fold of processes";
    case KernelRole::phases: return "phases";
  }
  return {};
}

std::string_view words(Multiplier multiplier) {
  switch (multiplier) {
    case Multiplier::none: return "nothing";
    case Multiplier::fma: return "fma";
    case Multiplier::dot_pairs: return "dot products of pairs of bf16";
    case Multiplier::tile_mma: return "tile_mma";
    case Multiplier::split_bf16: return "tile_mma, f32 as split bf16";
    case Multiplier::mma: return "tensor cores";
    case Multiplier::wgmma: return "warpgroups";
  }
  return {};
}

bool is_tensor_core(Multiplier multiplier) {
  return multiplier == Multiplier::mma || multiplier == Multiplier::wgmma;
}

std::string MissedPath::to_string() const {
  if (path == Multiplier::none) return "not in one kernel: " + why;
  return fmt::format("not by {}: {}", words(path), why);
}

std::string_view LaunchOp::op_name() const { return op ? std::string_view(op->name.value) : "copy"; }

std::string LaunchOp::to_string() const {
  const std::string start = value.valid() ? fmt::format("%{} ", value.index) : "";
  return fmt::format("{}{}{}{}", start, op_name(), name.empty() ? "" : " ", name);
}

LaunchOp launch_op(const ir::Graph& graph, ir::ValueId id) {
  const ir::Node& node = graph[id];
  return {id, node.op, visible(node.name), node.loc};
}

}  // namespace lathe
