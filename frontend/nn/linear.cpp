#include "frontend/nn/linear.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/ops.h"

namespace lathe::nn {

namespace {
std::string member(std::string_view module, std::string_view name, bool flat) {
  return flat ? std::string(module) : fmt::format("{}.{}", module, name);
}

/// The automatic start takes the last dim for the inputs, which an [in, out] weight has first.
Init weight_init(const LinearOptions& options, const Dim& in) {
  const bool automatic = options.weight.kind == Init::Kind::automatic;
  if (!options.in_out || !automatic || in.value().value_or(0) < 1) return options.weight;
  return Init::normal(1 / std::sqrt(static_cast<double>(*in.value())));
}
}  // namespace

Linear::Linear(Graph& g, std::string_view name, const Dim& in, const Dim& out, const LinearOptions& options, Where at)
    : path_(g.path(name)),
      in_out_(options.in_out),
      weight_(g.parameter(member(name, "weight", options.flat), options.dtype,
                          options.in_out ? Shape{in, out} : Shape{out, in}, weight_init(options, in), at)) {
  if (options.bias) bias_ = g.parameter(fmt::format("{}.bias", name), options.dtype, {out}, Init::zeros(), at);
}

Tensor Linear::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path_);
  if (!in_out_) return bias_ ? linear(x, weight_, *bias_) : linear(x, weight_);
  const Tensor y = matmul(x, weight_);  // [.., out]
  return bias_ ? y + *bias_ : y;
}

Embedding::Embedding(Graph& g, std::string_view name, const Dim& count, const Dim& d, const EmbeddingOptions& options,
                     Where at)
    : path_(g.path(name)),
      table_(g.parameter(member(name, "weight", options.flat), options.dtype, {count, d}, options.table, at)) {}

Tensor Embedding::operator()(const Tensor& ids, Where at) const {
  const CallSite line(ids, at, path_);
  return embedding(ids, table_);
}

}  // namespace lathe::nn
