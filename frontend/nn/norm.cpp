#include "frontend/nn/norm.h"

#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"

namespace lathe::nn {

LayerNorm::LayerNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : Module(parent, name, "LayerNorm", options.dtype), eps_(options.eps) {
  if (!options.weight) return;
  weight_ = declare("weight", {d}, Init::ones(), at);
  if (options.bias) bias_ = declare("bias", {d}, Init::zeros(), at);
}

Tensor LayerNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  if (!weight_) return layer_norm(x, eps_);
  const Tensor weight = weight_->as(x);
  if (bias_) return layer_norm(x, weight, bias_->as(x), eps_);
  return detail::op("layer_norm", at, {&x, &weight}, {{"eps", eps_}});
}

RmsNorm::RmsNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : Module(parent, name, "RmsNorm", options.dtype), eps_(options.eps), unit_offset_(options.unit_offset) {
  if (options.weight)
    weight_ = declare(options.flat ? "" : "weight", {d}, options.unit_offset ? Init::zeros() : Init::ones(), at);
}

Tensor RmsNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  if (!weight_) return rms_norm(x, eps_);
  const Tensor weight = weight_->as(x);
  return rms_norm(x, unit_offset_ ? weight + 1 : weight, eps_);
}

Dropout::Dropout(double rate, Where at) : rate_(rate) {
  if (!(rate >= 0 && rate < 1))
    throw UserError(Location(at), "dropout", fmt::format("the rate is {}", rate), "dropout_rate",
                    "give a rate from 0 up to, but not including, 1");
}

Tensor Dropout::operator()(const Tensor& x, Where at) const { return rate_ > 0 ? dropout(x, rate_, at) : x; }

}  // namespace lathe::nn
