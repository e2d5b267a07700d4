#include "models/import/onnx/ops/op_functions.h"

namespace lathe::onnx {

std::optional<Ints> given_axes(const OpCall& call, std::size_t i, int rank) {
  if (call.has(i)) return axes_from_front(call, call.integers(i, "axes"), rank);
  if (call.has("axes")) return axes_from_front(call, call.integers("axes"), rank);
  return std::nullopt;
}

Tensor quantized(const Tensor& scaled, const Tensor& zero_point, DType dtype) {
  const IntegerLimits limits = integer_limits(dtype);
  return clamp(scaled.round() + zero_point.to(scaled.dtype()), limits.lowest, limits.highest).to(dtype);
}

}  // namespace lathe::onnx
