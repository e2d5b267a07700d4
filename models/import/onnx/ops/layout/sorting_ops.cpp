#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

/// The values are sorted, also if the model allows any order. Equal elements are in the order of their positions.
Results top_k_op(const OpCall& call) {
  call.ignore({"sorted"});
  const Tensor given = call.tensor(0), x = is_byte(given.dtype()) ? given.to(i32) : given;
  const int axis = call.axis(call.integer("axis", -1), x.rank());
  const std::vector<Dim> k = call.has("k") ? std::vector<Dim>{call.integer("k")} : call.dims(1, "k");
  if (k.size() != 1) call.fail("k has more than one element", "import_operand");
  const Ranked ranked = top_k(x, k[0], axis, call.flag("largest", true));
  return {ranked.values.to(given.dtype()), ranked.indices};
}

}  // namespace

std::span<const OpRecord> sorting_ops() {
  static constexpr OpRecord records[] = {
      {"TopK", 1, 9, "axis k", top_k_op},
      {"TopK", 10, 10, "axis", top_k_op},
      {"TopK", 11, latest, "axis largest sorted", top_k_op},
  };
  return records;
}

}  // namespace lathe::onnx
