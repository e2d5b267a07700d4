#include "frontend/nn/norm.h"

#include <fmt/core.h>

#include "frontend/ops/ops.h"

namespace lathe::nn {

LayerNorm::LayerNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : Module(parent, name, "LayerNorm"),
      eps_(options.eps),
      weight_(declare("weight", options.dtype, {d}, Init::ones(), at)),
      bias_(declare("bias", options.dtype, {d}, Init::zeros(), at)) {}

Tensor LayerNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  return layer_norm(x, weight_.as(x), bias_.as(x), eps_);
}

RmsNorm::RmsNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : Module(parent, name, "RmsNorm"),
      eps_(options.eps),
      unit_offset_(options.unit_offset),
      weight_(declare(options.flat ? "" : "weight", options.dtype, {d},
                      options.unit_offset ? Init::zeros() : Init::ones(), at)) {}

Tensor RmsNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const Tensor weight = weight_.as(x);
  return rms_norm(x, unit_offset_ ? weight + 1 : weight, eps_);
}

Dropout::Dropout(double rate, Where at) : rate_(rate) {
  if (!(rate >= 0 && rate < 1))
    throw UserError(Location(at), "dropout", fmt::format("the rate is {}", rate), "dropout_rate",
                    "give a rate from 0 up to, but not including, 1");
}

Tensor Dropout::operator()(const Tensor& x, Where at) const {
  return rate_ > 0 ? dropout(x, x.graph(at).random_state(at), rate_, at) : x;
}

}  // namespace lathe::nn
