#include "frontend/nn/recurrent/causal_conv.h"

#include <cmath>

#include "frontend/graph.h"
#include "frontend/nn/require_option.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/spatial/conv_ops.h"

namespace lathe::nn {

CausalConv::CausalConv(const Module& parent, std::string_view name, const Dim& channels,
                       const CausalConvOptions& options, Where at)
    : Module(parent, name, "CausalConv", options.dtype),
      channels_(channels.number(at)),
      size_((
          require_option(at, "CausalConv", "conv_options", options.size >= 1, "size", options.size, "give 1 or more"),
          options.size)),
      weight_(declare("weight", {channels, 1, size_},
                      Init::uniform({.low = -1 / std::sqrt(static_cast<double>(size_)),
                                     .high = 1 / std::sqrt(static_cast<double>(size_))}),
                      at)) {
  if (options.bias) bias_ = declare("bias", {channels}, Init::zeros(), at);
}

CausalConvResults CausalConv::run(const Tensor& x, const Tensor& state, Where at) const {
  const CallSite line(x, at, path());
  const Dim length = x.size(1);
  const Tensor seen = state.is_empty() ? pad(x, 1, size_ - 1, 0) : concat({state.to(x.dtype()), x}, 1);
  const Tensor channels_first = seen.transpose(1, 2), weight = weight_.as(x);
  const ConvOptions depthwise{.groups = channels_};
  const Tensor output =
      bias_ ? conv1d(channels_first, weight, bias_->as(x), depthwise) : conv1d(channels_first, weight, depthwise);
  return {.output = output.transpose(1, 2), .state = seen.slice(1, length)};
}

}  // namespace lathe::nn
