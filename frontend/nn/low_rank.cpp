#include "frontend/nn/low_rank.h"

#include <cmath>

#include "frontend/nn/require_option.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

void check(const LowRankOptions& options, const Where& at) {
  const auto require = [&](bool holds, std::string_view name, const auto& value, std::string_view hint) {
    require_option(at, "low_rank", "low_rank_options", holds, name, value, hint);
  };
  require(options.r.value().value_or(0) >= 1, "the rank r", options.r.to_string(), "give a number of at least 1");
  require(std::isfinite(options.scale), "the scale", options.scale, "give a finite number, such as alpha / r");
}

/// Initializer of A. The default is that of torch.nn.Linear: kaiming_uniform with a = sqrt(5), which is uniform in
/// +-in^-0.5.
Init start_of_a(const LowRankOptions& options, const Dim& in) {
  if (options.a.kind != Init::Kind::automatic) return options.a;
  const double limit = 1 / std::sqrt(static_cast<double>(in.value().value_or(1)));
  return Init::uniform({.low = -limit, .high = limit});
}

Init start_of_b(const LowRankOptions& options) {
  return options.b.kind == Init::Kind::automatic ? Init::zeros() : options.b;
}

}  // namespace

LowRank::LowRank(const Linear& layer, const LowRankOptions& options, const Where& at)
    : Module((check(options, at), layer), "", "LowRank"),
      in_out_(layer.in_out()),
      scale_(options.scale),
      a_(declare("lora_A.weight", options.dtype, {options.r, layer.in()}, start_of_a(options, layer.in()), at)),
      b_(declare("lora_B.weight", options.dtype, {layer.out(), options.r}, start_of_b(options), at)),
      dropout_(options.dropout, at) {}

Tensor LowRank::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const Tensor low = linear(dropout_(x), a_.as(x));  // [.., r]
  return linear(low, b_.as(x)) * scale_;             // [.., out]
}

Tensor LowRank::delta(const Tensor& like, Where at) const {
  const CallSite line(like, at, path());
  const Tensor product = matmul(b_.as(like), a_.as(like)) * scale_;  // [out, in]
  return in_out_ ? product.transpose(0, 1) : product;
}

}  // namespace lathe::nn
