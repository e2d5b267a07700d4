#include "frontend/nn/linear.h"

#include <cmath>

#include "frontend/ops.h"

namespace lathe::nn {

namespace {
/// A flat parameter is named as its module.
std::string_view weight_name(bool flat) { return flat ? "" : "weight"; }

/// The automatic start takes the last dim for the inputs, which an [in, out] weight has first.
Init weight_init(const LinearOptions& options, const Dim& in) {
  const bool automatic = options.weight.kind == Init::Kind::automatic;
  if (!options.in_out || !automatic || in.value().value_or(0) < 1) return options.weight;
  return Init::normal(1 / std::sqrt(static_cast<double>(*in.value())));
}
}  // namespace

Linear::Linear(const Module& parent, std::string_view name, const Dim& in, const Dim& out,
               const LinearOptions& options, Where at)
    : Module(parent, name, "Linear"),
      in_out_(options.in_out),
      weight_(declare(weight_name(options.flat), options.dtype, options.in_out ? Shape{in, out} : Shape{out, in},
                      weight_init(options, in), at)) {
  if (options.bias) bias_ = declare("bias", options.dtype, {out}, Init::zeros(), at);
}

Tensor Linear::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const Tensor weight = weight_.as(x);
  if (!in_out_) return bias_ ? linear(x, weight, bias_->as(x)) : linear(x, weight);
  const Tensor y = matmul(x, weight);  // [.., out]
  return bias_ ? y + bias_->as(x) : y;
}

Embedding::Embedding(const Module& parent, std::string_view name, const Dim& count, const Dim& d,
                     const EmbeddingOptions& options, Where at)
    : Module(parent, name, "Embedding"),
      table_(declare(weight_name(options.flat), options.dtype, {count, d}, options.table, at)) {}

Tensor Embedding::operator()(const Tensor& ids, Where at) const {
  const CallSite line(ids, at, path());
  return embedding(ids, table_.in(ids));
}

}  // namespace lathe::nn
