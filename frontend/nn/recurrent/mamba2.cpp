#include "frontend/nn/recurrent/mamba2.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>
#include <vector>

#include "frontend/graph.h"
#include "frontend/nn/require_option.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/recurrences.h"

namespace lathe::nn {

namespace {

const Mamba2Options& checked_mamba2(const Mamba2Options& o, const Where& at) {
  for (const auto& [name, value] :
       {std::pair("heads", o.heads), std::pair("head_size", o.head_size), std::pair("state_size", o.state_size),
        std::pair("groups", o.groups), std::pair("conv", o.conv), std::pair("chunk", o.chunk)})
    require_option(at, "Mamba2", "mixer_options", value >= 1, name, value, "give 1 or more");
  require_option(at, "Mamba2", "mixer_options", o.heads % o.groups == 0, "groups", o.groups,
                 fmt::format("give a divisor of the {} heads", o.heads));
  return o;
}

/// The size of x, and of x, B and C.
std::int64_t inner_of(const Mamba2Options& o) { return o.heads * o.head_size; }
std::int64_t channels_of(const Mamba2Options& o) { return inner_of(o) + 2 * o.groups * o.state_size; }

/// softplus(dt_bias) from 0.001 to 0.1, evenly spaced by their logarithms.
Init initial_mamba2_dt(std::int64_t heads) {
  std::vector<double> values;
  for (std::int64_t h = 0; h < heads; ++h) {
    const double dt = 1e-3 * std::pow(100.0, (static_cast<double>(h) + 0.5) / static_cast<double>(heads));
    values.push_back(std::log(std::expm1(dt)));
  }
  return Init::values(values);
}

/// The logarithms of 1, 2, ..
Init initial_mamba2_decays(std::int64_t heads) {
  std::vector<double> values;
  for (std::int64_t h = 0; h < heads; ++h) values.push_back(std::log(static_cast<double>(h + 1)));
  return Init::values(values);
}

}  // namespace

Mamba2::Mamba2(const Module& parent, std::string_view name, const Dim& d, const Mamba2Options& options, Where at)
    : Module(parent, name, "Mamba2", options.dtype),
      options_(checked_mamba2(options, at)),
      in_(*this, "in_proj", d, inner_of(options) + channels_of(options) + options.heads, {.bias = options.bias}, at),
      conv_(*this, "conv1d", channels_of(options), {.size = options.conv, .bias = options.conv_bias}, at),
      dt_bias_(declare("dt_bias", {options.heads}, initial_mamba2_dt(options.heads), at)),
      a_log_(declare("A_log", {options.heads}, initial_mamba2_decays(options.heads), at)),
      skip_(declare("D", {options.heads}, Init::ones(), at)),
      norm_(*this, "norm", inner_of(options), {.eps = options.eps}, at),
      out_(*this, "out_proj", inner_of(options), d, {.bias = options.bias}, at) {}

Tensor Mamba2::operator()(const Operand& x) const { return run(x.tensor, {}, x.at).output; }

MixerResults Mamba2::run(const Tensor& x, const MixerState& state, Where at) const {
  const Scope scope(*this, x, at);
  const Mamba2Options& o = options_;
  const Dim batch = x.size(0), length = x.size(1);
  const std::vector<Tensor> projected = in_(x).split({inner_of(o), channels_of(o), o.heads}, -1);
  const CausalConvResults conv = conv_.run(projected[1], state.conv);

  const DType work = x.dtype() == f64 ? f64 : f32;
  const Dim grouped = o.groups * o.state_size;
  const std::vector<Tensor> mixed = silu(conv.output.to(work)).split({inner_of(o), grouped, grouped}, -1);
  const auto in_groups = [&](const Tensor& a) { return a.reshape({batch, length, o.groups, o.state_size}); };
  const Tensor raw = projected[2].to(work);
  Tensor dt = softplus(raw + dt_bias_.as(raw));
  if (o.dt_low > 0 || std::isfinite(o.dt_high)) dt = clamp(dt, o.dt_low, o.dt_high);
  const RecurrenceResults mixer = state_space_dual(
      mixed[0].reshape({batch, length, o.heads, o.head_size}), dt, -exp(a_log_.as(raw)), in_groups(mixed[1]),
      in_groups(mixed[2]), {.chunk = o.chunk, .initial = state.recurrence, .skip = skip_.as(raw)});
  const Tensor gated = mixer.output.reshape({batch, length, inner_of(o)}) * silu(projected[0].to(work));
  return {.output = out_(norm_(gated).to(x.dtype())), .state = {.conv = conv.state, .recurrence = mixer.state}};
}

}  // namespace lathe::nn
