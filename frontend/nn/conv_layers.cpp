#include "frontend/nn/conv_layers.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/spatial/per_dim.h"
#include "frontend/ops/spatial/pooling.h"
#include "ir/support/error.h"

namespace lathe::nn {

namespace {

/// The weight of a convolution and the bound of its initial values.
struct Kernel {
  Shape shape;
  double bound = 0;  ///< 1 / sqrt(fan_in), if the sizes are known
};

Kernel kernel_of(int spatial, const Dim& in, const Dim& out, const ConvLayerOptions& o, const Where& at) {
  const auto each = in.unnamed().divided_by(o.groups < 1 ? 1 : o.groups);
  if (o.groups < 1 || !each || !out.unnamed().divided_by(o.groups))
    throw UserError(
        Location(at), "conv",
        fmt::format("{} and {} channels do not divide into {} groups", in.to_string(), out.to_string(), o.groups),
        "conv_options", "give a number of groups that divides both");
  Kernel kernel{.shape = {out, o.groups == 1 ? in : *each}};
  Dim fan_in = *each;
  for (const std::int64_t size : detail::for_each_dim("conv", "size", o.size, spatial, at, 1)) {
    kernel.shape.push_back(Dim(size));
    fan_in = fan_in * Dim(size);
  }
  if (const auto known = fan_in.value(); known && *known > 0)
    kernel.bound = 1 / std::sqrt(static_cast<double>(*known));
  return kernel;
}

Init initial(const Kernel& kernel) {
  return kernel.bound > 0 ? Init::uniform({.low = -kernel.bound, .high = kernel.bound}) : Init::automatic();
}

ConvOptions call_options(const ConvLayerOptions& o) { return {o.stride, o.padding, o.dilation, o.groups}; }

/// All dims of [B, C, n..] but the channels.
Axes all_but_channels(const Tensor& x) {
  Axes axes(0);
  for (int d = 2; d < x.rank(); ++d) axes.dims.push_back(d);
  return axes;
}

/// Views [C] so that it broadcasts to x [B, C, n..].
Tensor along_channels(const Tensor& a, const Tensor& x) {
  Shape shape{a.size(0)};
  for (int d = 2; d < x.rank(); ++d) shape.push_back(Dim(1));
  return a.view(shape);
}

}  // namespace

ConvLayer::ConvLayer(const Module& parent, std::string_view name, int spatial_dims, const Dim& in, const Dim& out,
                     const ConvLayerOptions& options, const Where& at)
    : Module(parent, name, fmt::format("Conv{}d", spatial_dims), options.dtype),
      spatial_dims_(spatial_dims),
      options_(call_options(options)) {
  const Kernel kernel = kernel_of(spatial_dims, in, out, options, at);
  weight_ = declare("weight", kernel.shape, initial(kernel), at);
  if (options.bias) bias_ = declare("bias", {out}, initial(kernel), at);
}

Tensor ConvLayer::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const Tensor weight = weight_->as(x);
  if (spatial_dims_ == 1) return bias_ ? conv1d(x, weight, bias_->as(x), options_) : conv1d(x, weight, options_);
  return bias_ ? conv2d(x, weight, bias_->as(x), options_) : conv2d(x, weight, options_);
}

GroupNorm::GroupNorm(const Module& parent, std::string_view name, const Dim& channels,
                     const GroupNormOptions& options, Where at)
    : Module(parent, name, "GroupNorm", options.dtype),
      groups_(options.groups),
      eps_(options.eps),
      weight_(declare("weight", {channels}, Init::ones(), at)),
      bias_(declare("bias", {channels}, Init::zeros(), at)) {}

Tensor GroupNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  return group_norm(x, groups_, weight_.as(x), bias_.as(x), eps_);
}

BatchNorm::BatchNorm(const Module& parent, std::string_view name, const Dim& channels,
                     const BatchNormOptions& options, Where at)
    : Module(parent, name, "BatchNorm", options.dtype),
      options_(options),
      weight_(declare("weight", {channels}, Init::ones(), at)),
      bias_(declare("bias", {channels}, Init::zeros(), at)) {}

namespace {

/// A state [C] of the graph, declared at its first use within the module's scope.
Tensor channel_state(const Tensor& x, const std::string& path, std::string_view name, const Parameter& like,
                     const Init& init) {
  const Graph graph = x.graph();
  if (const auto found = graph.builder().find_argument(fmt::format("{}.{}", path, name))) return Tensor(*found);
  return graph.state(name, like.dtype(), like.shape(), init);
}

}  // namespace

Tensor BatchNorm::scaled(const Tensor& x, const Tensor& mean, const Tensor& variance) const {
  const Tensor rstd = rsqrt(along_channels(variance, x) + options_.eps);
  const Tensor normalized = (x - along_channels(mean, x)) * rstd;
  return normalized * along_channels(weight_.as(x), x) + along_channels(bias_.as(x), x);
}

Tensor BatchNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const Axes axes = all_but_channels(x);
  const Tensor mean = x.mean(axes), variance = x.var(axes, false, 0);
  Dim count(1);
  for (const std::int64_t d : axes.dims) count = count * x.size(d).unnamed();
  const Graph graph = x.graph();
  const auto keep = [&](std::string_view name, const Tensor& batch, const Init& init) {
    const Tensor running = channel_state(x, path(), name, weight_, init);
    graph.update(running, running * (1 - options_.momentum) + batch.detach().to(running.dtype()) * options_.momentum);
  };
  const Tensor n = graph.dim_value(count, x.dtype());
  keep("running_mean", mean, Init::zeros());
  keep("running_var", variance * (n / maximum(n - 1, 1)), Init::ones());
  return scaled(x, mean, variance);
}

Tensor BatchNorm::evaluate(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const auto running = [&](std::string_view name, const Init& init) {
    return channel_state(x, path(), name, weight_, init).to(x.dtype());
  };
  return scaled(x, running("running_mean", Init::zeros()), running("running_var", Init::ones()));
}

}  // namespace lathe::nn
