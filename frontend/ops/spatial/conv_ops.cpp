#include "frontend/ops/spatial/conv_ops.h"

#include <fmt/core.h>

#include "frontend/built.h"
#include "frontend/ops/spatial/per_dim.h"
#include "ir/ops/convolution.h"
#include "ir/ops/functional/functional.h"
#include "ir/support/error.h"

namespace lathe {

using detail::built;
using detail::for_each_dim;

namespace {

Tensor convolved(std::string_view op, int spatial, const Tensor& x, const Tensor& weight, const Tensor* bias,
                 const ConvOptions& o, const Where& at) {
  detail::check_operands(op, at, {&x, &weight});
  detail::require_spatial_dims(op, x, spatial, spatial, at);
  const auto padding = for_each_dim(op, "padding", o.padding, spatial, at);
  const ir::Convolution convolution{for_each_dim(op, "stride", o.stride, spatial, at), padding, padding,
                                    for_each_dim(op, "dilation", o.dilation, spatial, at), o.groups};
  if (!bias) return built(op, at, [&](auto& a, auto& w) { return ir::conv(a, w, convolution); }, x, weight);
  return built(op, at, [&](auto& a, auto& w, auto& b) { return ir::conv(a, w, b, convolution); }, x, weight, *bias);
}

/// Checks what the convolution that this one is the transpose of would not: its input is this one's result.
void require_transposable(std::string_view op, const Tensor& x, const Tensor& weight, int spatial,
                          const ConvTransposeOptions& o, const Where& at) {
  detail::require_spatial_dims(op, x, spatial, spatial, at);
  const auto fail = [&](std::string_view label, const std::string& message, std::string_view hint) {
    throw UserError(Location(at), op, message, label, hint);
  };
  if (weight.rank() != x.rank())
    fail("conv_rank", fmt::format("the weight has {} dims, not {}", weight.rank(), x.rank()),
         "the weight is [channels, out channels / groups, kernel sizes..]");
  for (int d = 2; d < weight.rank(); ++d)
    if (!weight.size(d).value())
      fail("conv_weight", fmt::format("dim {} of the weight is {}", d, weight.size(d).to_string()),
           "kernel sizes are known numbers of 1 or more");
  if (o.groups < 1 || !weight.size(0).unnamed().divided_by(o.groups))
    fail("conv_options",
         fmt::format("the {} channels of the weight do not divide into {} groups", weight.size(0).to_string(),
                     o.groups),
         "give a number of groups that divides the channels");
}

Tensor transposed(std::string_view op, int spatial, const Tensor& x, const Tensor& weight, const Tensor* bias,
                  const ConvTransposeOptions& o, const Where& at) {
  detail::check_operands(op, at, {&x, &weight});
  require_transposable(op, x, weight, spatial, o, at);
  const auto padding = for_each_dim(op, "padding", o.padding, spatial, at),
             more = for_each_dim(op, "output_padding", o.output_padding, spatial, at);
  const ir::Convolution convolution{for_each_dim(op, "stride", o.stride, spatial, at, 1), padding, padding,
                                    for_each_dim(op, "dilation", o.dilation, spatial, at, 1), o.groups};
  std::vector<Dim> sizes;
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t reach = convolution.dilation[k] * (*weight.size(i + 2).value() - 1);
    if (more[k] >= std::max(convolution.stride[k], convolution.dilation[k]))
      throw UserError(Location(at), op,
                      fmt::format("output_padding is {}, with stride {} and dilation {}", more[k],
                                  convolution.stride[k], convolution.dilation[k]),
                      "conv_options", "give a number below the stride or the dilation");
    sizes.push_back((x.size(i + 2).unnamed() - Dim(1)) * Dim(convolution.stride[k]) +
                    Dim(reach + more[k] + 1 - 2 * padding[k]));
  }
  const auto map = [&](const ir::Value& a, const ir::Value& w) {
    return ir::transposed_conv(a, w, convolution, sizes);
  };
  if (!bias) return built(op, at, map, x, weight);
  const auto map_and_add = [&](const ir::Value& a, const ir::Value& w, const ir::Value& b) {
    ir::Value channels = b;
    for (int i = 0; i < spatial; ++i) channels = ir::unsqueeze(channels, -1);
    return ir::add(map(a, w), channels);
  };
  return built(op, at, map_and_add, x, weight, *bias);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const ConvOptions& options, Where at) {
  return convolved("conv1d", 1, x, weight, nullptr, options, at);
}
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options, Where at) {
  return convolved("conv1d", 1, x, weight, &bias, options, at);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options, Where at) {
  return convolved("conv2d", 2, x, weight, nullptr, options, at);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options, Where at) {
  return convolved("conv2d", 2, x, weight, &bias, options, at);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const ConvOptions& options, Where at) {
  return convolved("conv3d", 3, x, weight, nullptr, options, at);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options, Where at) {
  return convolved("conv3d", 3, x, weight, &bias, options, at);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose1d", 1, x, weight, nullptr, options, at);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose1d", 1, x, weight, &bias, options, at);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose2d", 2, x, weight, nullptr, options, at);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose2d", 2, x, weight, &bias, options, at);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose3d", 3, x, weight, nullptr, options, at);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options, Where at) {
  return transposed("conv_transpose3d", 3, x, weight, &bias, options, at);
}

}  // namespace lathe
