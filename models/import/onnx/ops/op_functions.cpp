#include "models/import/onnx/ops/op_functions.h"

namespace lathe::onnx {

std::optional<Ints> given_axes(const OpCall& call, std::size_t i, int rank) {
  if (call.has(i)) return axes_from_front(call, call.integers(i, "axes"), rank);
  if (call.has("axes")) return axes_from_front(call, call.integers("axes"), rank);
  return std::nullopt;
}

}  // namespace lathe::onnx
