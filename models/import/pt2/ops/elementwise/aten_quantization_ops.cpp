#include <fmt/core.h>

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Quantized integers q and their floats: x = (q - zero_point) * scale.
namespace lathe::pt2 {

namespace {

/// The scale and the zero point, as numbers or tensors that broadcast to x, and the limits of quantized values.
struct Quantization {
  Tensor scale, inverse_scale, zero_point;
  std::int64_t lowest = 0, highest = 0;

  /// Returns round(x / scale) + zero_point, without limits.
  Tensor unlimited(const Tensor& x) const { return round(x * inverse_scale) + zero_point; }
  Tensor quantized(const Tensor& x) const {
    return clamp(unlimited(x), static_cast<double>(lowest), static_cast<double>(highest));
  }
  Tensor dequantized(const Tensor& q) const { return (q - zero_point) * scale; }
};

/// Operands 1 and 2 are the scale and the zero point: one of each, or one for each index of the argument `axis`.
Quantization quantization_of(const OpCall& call) {
  const int rank = call.operand(0).rank();
  const bool is_per_channel = call.has("axis");
  const auto factors = [&](std::size_t i) {
    const Tensor given = operand_as(call, i, f32);
    if (is_per_channel) return along_axis(given, axis_argument(call, rank, "axis"), rank);
    if (!given.shape().numel().is(1)) call.fail(fmt::format("operand {} is not one number", i), "import_operand");
    return given.reshape({});
  };
  const Tensor scale = factors(1), zero = call.graph().constant(0, f32);
  return {scale, reciprocal(scale), call.has(2) ? factors(2) : zero, call.integer("quant_min"),
          call.integer("quant_max")};
}

/// PyTorch divides 1 by a scale that is a number in f64.
Results quantize(const OpCall& call) {
  Quantization by = quantization_of(call);
  if (const HostTensor* const scale = call.operand(1).constant(); scale && call.is_number(1))
    by.inverse_scale = call.graph().constant(1 / scale->get(0), f32);
  return {by.quantized(call.tensor(0).to(f32)).to(dtype_argument(call, i8))};
}

/// The limits and the dtype describe the operand.
Results dequantize(const OpCall& call) {
  call.ignore({"dtype", "out_dtype"});
  DType dtype = f32;
  if (call.has("out_dtype")) dtype = dtype_of(call.integer("out_dtype"), call.node().location.place());
  return {quantization_of(call).dequantized(call.tensor(0).to(f32)).to(dtype)};
}

/// Rounds floats to those that have quantized values. The gradient is 1 within the limits, and 0 beyond them.
Results fake_quantize(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Quantization by = quantization_of(call);
  const Tensor given = x.to(f32), unlimited = by.unlimited(given);
  const Tensor is_within =
      (unlimited >= static_cast<double>(by.lowest)) & (unlimited <= static_cast<double>(by.highest));
  const Tensor result = by.dequantized(by.quantized(given)).to(x.dtype());
  return {straight_through(result, where(is_within, x, 0))};
}

}  // namespace

std::span<const OpRecord> aten_quantization_ops() {
  constexpr std::string_view operands = "self scale zero_point";
  static constexpr OpRecord records[] = {
      aten("fake_quantize_per_tensor_affine", operands, "quant_min quant_max", fake_quantize),
      aten("fake_quantize_per_tensor_affine.tensor_qparams", operands, "quant_min quant_max", fake_quantize),
      aten("fake_quantize_per_channel_affine", operands, "axis quant_min quant_max", fake_quantize),
  };
  return records;
}

std::span<const OpRecord> quantized_decomposed_ops() {
  constexpr std::string_view one = "input scale zero_point", each = "input scales zero_points",
                             of_one = "quant_min quant_max dtype", of_each = "axis quant_min quant_max dtype";
  static constexpr OpRecord records[] = {
      aten("quantize_per_tensor", one, of_one, quantize),
      aten("quantize_per_tensor.tensor", one, of_one, quantize),
      aten("quantize_per_channel", each, of_each, quantize),
      aten("dequantize_per_tensor", one, "quant_min quant_max dtype out_dtype", dequantize),
      aten("dequantize_per_tensor.tensor", one, "quant_min quant_max dtype out_dtype", dequantize),
      aten("dequantize_per_channel", each, "axis quant_min quant_max dtype out_dtype", dequantize),
  };
  return records;
}

}  // namespace lathe::pt2
