#include <fmt/core.h>

#include <utility>

#include "frontend/ops/spatial/conv_ops.h"
#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

PerDim per_dim(Ints numbers) {
  PerDim all = 1;
  all.numbers = std::move(numbers);
  return all;
}

/// Returns the sizes of the kernel: of the weight, which kernel_shape must equal.
Ints kernel_of(const OpCall& call, const Shape& weight) {
  Ints kernel;
  for (int i = 2; i < weight.rank(); ++i) {
    if (!weight[i].value()) call.fail("the weight has unknown sizes", "import_size");
    kernel.push_back(*weight[i].value());
  }
  if (call.integers("kernel_shape", kernel) != kernel)
    call.fail("the attribute kernel_shape differs from the shape of the weight", "import_attribute");
  return kernel;
}

Tensor with_bias(const OpCall& call, const Tensor& y) {
  return call.has(2) ? y + along_axis(call.tensor(2), 1, y.rank()) : y;
}

Tensor convolved(const OpCall& call, const Tensor& x, const Tensor& weight) {
  Windows windows = whole_windows_of(call, x, kernel_of(call, weight.shape()));
  Tensor source = x;
  if (windows.low != windows.high) {
    source = padded_for(x, windows, 0, 0);
    windows.low.assign(windows.low.size(), 0);
  }
  const ConvOptions options{.stride = per_dim(windows.stride),
                            .padding = per_dim(windows.low),
                            .dilation = per_dim(windows.dilation),
                            .groups = call.integer("group", 1)};
  switch (windows.size.size()) {
    case 1: return conv1d(source, weight, options);
    case 2: return conv2d(source, weight, options);
    case 3: return conv3d(source, weight, options);
    default: break;
  }
  call.fail(fmt::format("a convolution over {} dims; 1 to 3 are supported", windows.size.size()));
}

Results conv_op(const OpCall& call) { return {with_bias(call, convolved(call, call.tensor(0), call.tensor(1)))}; }

/// Sums of 8-bit products are exact in f64.
Results conv_integer(const OpCall& call) {
  const auto shifted = [&](std::size_t i) {
    const Tensor x = call.tensor(i).to(f64);
    if (!call.has(i + 2)) return x;
    const Tensor zero = call.tensor(i + 2).to(f64);
    return x - (zero.rank() == 1 && !zero.size(0).is(1) ? along_axis(zero, 0, x.rank()) : zero.reshape({}));
  };
  return {convolved(call, shifted(0), shifted(1)).to(i32)};
}

/// The padding that gives an output of a size: the attribute output_shape, or `stride` outputs for each input.
/// A larger output than all inputs reach ends with zeros, as many as `added`.
void pad_to_outputs(const OpCall& call, const Tensor& x, Ints& added, Windows& windows) {
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!is_same && !call.has("output_shape")) return;
  const std::size_t count = windows.size.size();
  const Ints wanted = call.integers("output_shape", Ints());
  if (!wanted.empty() && wanted.size() != count)
    call.fail(fmt::format("the attribute output_shape has {} sizes for {} dims", wanted.size(), count),
              "import_attribute");
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<std::int64_t> n = x.size(static_cast<int>(i) + 2).value();
    if (!n) call.fail("the padding depends on an unknown size", "import_size");
    const std::int64_t outputs = wanted.empty() ? *n * windows.stride[i] : wanted[i];
    std::int64_t total = windows.stride[i] * (*n - 1) + added[i] + windows.extent(i) - outputs;
    if (total < 0) added[i] -= std::exchange(total, 0);
    windows.low[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    windows.high[i] = total - windows.low[i];
  }
}

/// The product of quantized tensors, quantized again, with one scale of the weight or one for each channel.
Results quantized_conv(const OpCall& call) {
  const auto number = [&](std::size_t i) {
    if (!call.operand(i).shape().numel().is(1))
      call.fail(fmt::format("operand {} is not one number", i), "import_operand");
    return call.tensor(i).reshape({}).to(f64);
  };
  const auto per_channel = [&](std::size_t i, int axis) {
    const Tensor given = call.tensor(i).to(f64);
    return given.shape().numel().is(1) ? given.reshape({}) : along_axis(given, axis, call.operand(0).rank());
  };
  const Tensor x = call.tensor(0).to(f64) - number(2), weight = call.tensor(3).to(f64) - per_channel(5, 0);
  Tensor sums = convolved(call, x, weight);  // exact in f64
  if (call.has(8)) sums = sums + along_axis(call.tensor(8).to(f64), 1, sums.rank());
  const Tensor scaled = sums * (number(1) * per_channel(4, 1) / number(6));
  if (!is_byte(call.dtype(7))) call.fail(fmt::format("quantized values of {}", name(call.dtype(7))));
  return {quantized(scaled, call.tensor(7).reshape({}), call.dtype(7))};
}

/// The transpose without padding, then zeros at its ends (output_padding) and without the padding at its sides.
Results conv_transpose_op(const OpCall& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1);
  const Ints kernel = kernel_of(call, weight.shape());
  Windows windows = windows_of(call, x, kernel);
  Ints added = call.integers("output_padding", Ints(kernel.size(), 0));
  if (added.size() != kernel.size()) call.fail("the attribute output_padding has another rank", "import_attribute");
  pad_to_outputs(call, x, added, windows);
  const ConvTransposeOptions options{
      .stride = per_dim(windows.stride), .dilation = per_dim(windows.dilation), .groups = call.integer("group", 1)};
  if (kernel.size() > 3)
    call.fail(fmt::format("a transposed convolution over {} dims; 1 to 3 are supported", kernel.size()));
  Tensor y = kernel.size() == 1   ? conv_transpose1d(x, weight, options)
             : kernel.size() == 2 ? conv_transpose2d(x, weight, options)
                                  : conv_transpose3d(x, weight, options);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const int dim = static_cast<int>(i) + 2;
    if (added[i] > 0) y = padded(y, dim, 0, added[i], 0);
    if (windows.low[i] > 0 || windows.high[i] > 0)
      y = y.slice(dim, windows.low[i], y.size(dim).unnamed() - Dim(windows.high[i]));
  }
  return {with_bias(call, y)};
}

constexpr std::string_view conv_attributes = "auto_pad dilations group kernel_shape pads strides";

}  // namespace

std::span<const OpRecord> convolution_ops() {
  static constexpr OpRecord records[] = {
      {"Conv", 1, latest, conv_attributes, conv_op},
      {"ConvInteger", 10, latest, conv_attributes, conv_integer},
      {"QLinearConv", 10, latest, conv_attributes, quantized_conv},
      {"ConvTranspose", 1, latest, "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
       conv_transpose_op},
  };
  return records;
}

}  // namespace lathe::onnx
