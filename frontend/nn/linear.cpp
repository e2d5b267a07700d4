#include "frontend/nn/linear.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/nn/low_rank.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"

namespace lathe::nn {

struct LinearState {
  bool in_out;
  Parameter weight;
  std::optional<Parameter> bias = {};
  std::optional<LowRank> low_rank = {};
};

namespace {
/// A flat parameter has the name of its module.
std::string_view weight_name(bool flat) { return flat ? "" : "weight"; }

/// Init::automatic takes the last dim as fan_in; in an [in, out] weight that is the first dim.
Init weight_init(const LinearOptions& options, const Dim& in) {
  const bool automatic = options.weight.kind == Init::Kind::automatic;
  if (!options.in_out || !automatic || in.value().value_or(0) < 1) return options.weight;
  return Init::normal({.deviation = 1 / std::sqrt(static_cast<double>(in.number()))});
}

/// Whether a matmul with x is a GEMV: x is known to have at most 4 rows, so the time is that of reading the weights.
bool is_gemv(const Tensor& x) {
  constexpr std::int64_t most_rows = 4;
  std::int64_t rows = 1;
  for (int i = 0; i < x.rank() - 1 && rows <= most_rows; ++i) rows *= x.size(i).value().value_or(most_rows + 1);
  return rows <= most_rows;
}

}  // namespace

Tensor project(const Tensor& x, const Parameter& weight, const std::optional<Parameter>& bias, bool in_out,
               Where at) {
  const DType dtype = x.dtype(at);
  const bool widens = weight.is_quantized() && size_in_bytes(dtype) < size_in_bytes(f32) && is_gemv(x);
  const Tensor left = widens ? x.to(f32, at) : x;
  const Tensor w = weight.as(left, at);
  const auto product = [&] {
    if (in_out) return bias ? matmul(left, w, at) + bias->as(left, at) : matmul(left, w, at);
    return bias ? linear(left, w, bias->as(left, at), at) : linear(left, w, at);
  };
  return product().to(dtype, at);
}

Linear::Linear(const Module& parent, std::string_view name, const Dim& in, const Dim& out,
               const LinearOptions& options, Where at)
    : Module(parent, name, "Linear", options.dtype) {
  set_linear_state(std::make_shared<LinearState>(
      LinearState{.in_out = options.in_out,
                  .weight = declare(weight_name(options.flat), options.in_out ? Shape{in, out} : Shape{out, in},
                                    weight_init(options, in), at)}));
  if (options.bias) linear_state()->bias = declare("bias", {out}, Init::zeros(), at);
}

std::optional<Linear> Linear::of(const Module& node) {
  return node.linear_state() ? std::optional(Linear(node)) : std::nullopt;
}

Tensor Linear::operator()(const Tensor& x, Where at) const {
  const CallSite line(x, at, path());
  const LinearState& s = *linear_state();
  const Tensor y = project(x, s.weight, s.bias, s.in_out);  // [.., out]
  return s.low_rank ? y + (*s.low_rank)(x) : y;
}

const Parameter& Linear::weight() const { return linear_state()->weight; }
const std::optional<Parameter>& Linear::bias() const { return linear_state()->bias; }
bool Linear::in_out() const { return linear_state()->in_out; }
Dim Linear::in() const { return weight().shape()[in_out() ? 0 : 1]; }
Dim Linear::out() const { return weight().shape()[in_out() ? 1 : 0]; }

const LowRank& Linear::add_low_rank(const LowRankOptions& options, Where at) const {
  if (low_rank())
    throw UserError(Location(at), "low_rank", fmt::format("{} has an adapter already", path()), "parameter_name",
                    "remove_low_rank() takes it off");
  return linear_state()->low_rank.emplace(LowRank(*this, options, at));
}

const LowRank* Linear::low_rank() const { return linear_state()->low_rank ? &*linear_state()->low_rank : nullptr; }

void Linear::remove_low_rank() const {
  if (const LowRank* adapter = low_rank()) remove(*adapter);
  linear_state()->low_rank.reset();
}

Embedding::Embedding(const Module& parent, std::string_view name, const Dim& count, const Dim& d,
                     const EmbeddingOptions& options, Where at)
    : Module(parent, name, "Embedding", options.dtype),
      table_(declare(weight_name(options.flat), {count, d}, options.table, at)) {}

Tensor Embedding::operator()(const Tensor& ids, Where at) const {
  const CallSite line(ids, at, path());
  return table_.rows(ids);
}

}  // namespace lathe::nn
