#include "frontend/nn/norm.h"

#include <fmt/core.h>

#include "frontend/ops.h"

namespace lathe::nn {

LayerNorm::LayerNorm(Graph& g, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : path_(g.path(name)),
      eps_(options.eps),
      weight_(g.parameter(fmt::format("{}.weight", name), options.dtype, {d}, Init::ones(), at)),
      bias_(g.parameter(fmt::format("{}.bias", name), options.dtype, {d}, Init::zeros(), at)) {}

Tensor LayerNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path_);
  return layer_norm(x, weight_, bias_, eps_);
}

RmsNorm::RmsNorm(Graph& g, std::string_view name, const Dim& d, const NormOptions& options, Where at)
    : path_(g.path(name)),
      eps_(options.eps),
      weight_(g.parameter(options.flat ? std::string(name) : fmt::format("{}.weight", name), options.dtype, {d},
                          Init::ones(), at)) {}

Tensor RmsNorm::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path_);
  return rms_norm(x, weight_, eps_);
}

Dropout::Dropout(Graph& g, double rate, Where at) : rate_(rate) {
  if (!(rate >= 0 && rate < 1))
    throw UserError(detail::line_of(g.builder(at), at), "dropout", fmt::format("the rate is {}", rate),
                    "dropout_rate", "give a rate from 0 up to, but not including, 1");
  if (rate > 0) state_ = g.random_state(at);
}

Tensor Dropout::operator()(const Tensor& x, Where at) const { return state_ ? dropout(x, *state_, rate_, at) : x; }

}  // namespace lathe::nn
