#include <fmt/core.h>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"

/// Quantization to i8 and u8: x = (q - zero point) * scale.
namespace lathe::onnx {

namespace {

/// Returns scales or zero points in a shape that broadcasts to x: one for all elements, one for each index of an
/// axis, or one for each block of neighbours along it.
Tensor parameters_for(const OpCall& call, const Tensor& x, const Tensor& parameters) {
  const std::int64_t given = call.integer("axis", 1), block = call.integer("block_size", 0);
  if (parameters.shape().numel().is(1)) return parameters.reshape({});
  const int axis = call.axis(given, x.rank());
  if (parameters.rank() == 1 && block == 0) return along_axis(parameters, axis, x.rank());
  if (block < 1 || parameters.rank() != x.rank())
    call.fail(fmt::format("scales {} for an operand {}", parameters.shape().to_string(), x.shape().to_string()),
              "import_operand");
  return parameters.repeat_interleave(block, axis).slice(axis, 0, x.size(axis));
}

void require_byte(const OpCall& call, DType dtype) {
  if (!is_byte(dtype)) call.fail(fmt::format("quantized values of {}; i8 and u8 are supported", name(dtype)));
}

Results quantize_linear(const OpCall& call) {
  call.ignore({"saturate"});  // of 8-bit floats
  if (call.integer("precision", 0) != 0) call.fail("the attribute precision is not supported", "import_attribute");
  const Tensor x = call.tensor(0), scale = parameters_for(call, x, call.tensor(1));
  const std::int64_t type = call.integer("output_dtype", 0);
  const DType dtype = call.has(2) ? call.dtype(2) : type != 0 ? dtype_of(type, call.node().location.place()) : u8;
  require_byte(call, dtype);
  const Tensor zero_point = call.has(2) ? parameters_for(call, x, call.tensor(2)) : call.graph().constant(0, i32);
  const DType wide = at_least_f32(x.dtype());
  return {quantized(x.to(wide) / scale.to(wide), zero_point, dtype)};
}

Results dequantize_linear(const OpCall& call) {
  const Tensor x = call.tensor(0), scale = parameters_for(call, x, call.tensor(1));
  const std::int64_t type = call.integer("output_dtype", 0);
  const DType dtype = type != 0 ? dtype_of(type, call.node().location.place()) : scale.dtype();
  Tensor shifted = x.to(i32);
  if (call.has(2)) shifted = shifted - parameters_for(call, x, call.tensor(2)).to(i32);
  const DType wide = at_least_f32(dtype);
  return {(shifted.to(wide) * scale.to(wide)).to(dtype)};
}

/// The range of x, with 0 in it, as u8.
Results dynamic_quantize_linear(const OpCall& call) {
  const Tensor x = call.tensor(0), low = minimum(x.min(), 0), high = maximum(x.max(), 0);
  const Tensor scale = (high - low) / 255.0;
  const Tensor zero_point = clamp((-low / scale).round(), 0, 255);
  return {quantized(x / scale, zero_point, u8), scale, zero_point.to(u8)};
}

/// The product of quantized matrices, quantized again. Sums are exact in f64.
Results quantized_matmul(const OpCall& call) {
  const DType dtype = call.dtype(7);
  require_byte(call, dtype);
  for (const std::size_t i : {1, 2, 4, 5, 6, 7})
    if (!call.operand(i).shape().numel().is(1)) call.fail("scales for each row or column are not supported");
  const auto shifted = [&](std::size_t i) { return call.tensor(i).to(f64) - call.tensor(i + 2).reshape({}).to(f64); };
  const auto scale = [&](std::size_t i) { return call.tensor(i).reshape({}).to(f64); };
  const Tensor product = matmul(shifted(0), shifted(3)) * (scale(1) * scale(4) / scale(6));
  return {quantized(product, call.tensor(7).reshape({}), dtype)};
}

}  // namespace

std::span<const OpRecord> quantization_ops() {
  static constexpr OpRecord records[] = {
      {"QuantizeLinear", 10, 12, "", quantize_linear},
      {"QuantizeLinear", 13, latest, "axis block_size output_dtype precision saturate", quantize_linear},
      {"DequantizeLinear", 10, 12, "", dequantize_linear},
      {"DequantizeLinear", 13, latest, "axis block_size output_dtype", dequantize_linear},
      {"DynamicQuantizeLinear", 11, latest, "", dynamic_quantize_linear},
      {"QLinearMatMul", 10, latest, "", quantized_matmul},
  };
  return records;
}

}  // namespace lathe::onnx
