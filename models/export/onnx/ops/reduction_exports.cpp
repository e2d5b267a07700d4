#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

/// Reductions, running sums and sorting.
namespace lathe::onnx {

namespace {

template <OpName name>
Text reduced(const OpExport& op) {
  const int rank = op.type(0).rank();
  Ints axes = op.attr<Ints>("dims");
  if (axes.empty()) return op[0];
  for (std::int64_t& axis : axes)
    if (axis < 0) axis += rank;
  return op.add(name.text, {op[0], op.integers(axes)}, {integer_attribute("keepdims", op.attr<bool>("keepdim"))});
}
Text logsumexp_of(const OpExport& op) {
  return op.add("ReduceLogSumExp", {op[0], op.integers({op.axis("dim", op.type(0).rank())})},
                {integer_attribute("keepdims", op.attr<bool>("keepdim"))});
}

Text argmax_of(const OpExport& op) {
  return op.add("ArgMax", {op[0]},
                {integer_attribute("axis", op.axis("dim", op.type(0).rank())), integer_attribute("keepdims", 0)});
}

/// 16-bit floats are summed in f32.
Text cumsum_of(const OpExport& op) {
  const bool is_narrow = op.dtype() == bf16 || op.dtype() == f16;
  const Text sums =
      op.add("CumSum", {is_narrow ? op.cast(op[0], f32) : op[0], op.scalar(op.axis("dim", op.rank()), i64)},
             {integer_attribute("exclusive", op.attr<bool>("exclusive")),
              integer_attribute("reverse", op.attr<bool>("reverse"))});
  return is_narrow ? op.cast(sums, op.dtype()) : sums;
}

/// Equal elements are in the order of their positions, in both formats.
Text positions_of(const OpExport& op, const Dim& k, bool largest) {
  const DType dtype = op.type(0).dtype;
  const DType wide = dtype == bf16 ? f32 : is_byte(dtype) || dtype == boolean ? i32 : dtype;
  return op.add("TopK", {wide == dtype ? op[0] : op.cast(op[0], wide), op.vector(k)},
                {integer_attribute("axis", op.axis("dim", op.rank())), integer_attribute("largest", largest)}, 1);
}
Text argsort_of(const OpExport& op) {
  const auto axis = static_cast<int>(op.axis("dim", op.rank()));
  return positions_of(op, op.type(0).shape[axis].unnamed(), op.attr<bool>("descending"));
}
Text top_k_of(const OpExport& op) { return positions_of(op, op.attr<Dim>("k"), op.attr<bool>("largest")); }

}  // namespace

std::span<const ExportRecord> reduction_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::sum, reduced<"ReduceSum">, "ReduceSum"},
      {&ir::ops::prod, reduced<"ReduceProd">, "ReduceProd"},
      {&ir::ops::max, reduced<"ReduceMax">, "ReduceMax"},
      {&ir::ops::min, reduced<"ReduceMin">, "ReduceMin"},
      {&ir::ops::mean, reduced<"ReduceMean">, "ReduceMean"},
      {&ir::ops::logsumexp, logsumexp_of, "ReduceLogSumExp"},
      {&ir::ops::argmax, argmax_of, "ArgMax"},
      {&ir::ops::cumsum, cumsum_of, "CumSum"},
      {&ir::ops::argsort, argsort_of, "TopK"},
      {&ir::ops::top_k, top_k_of, "TopK"},
  };
  return records;
}

}  // namespace lathe::onnx
