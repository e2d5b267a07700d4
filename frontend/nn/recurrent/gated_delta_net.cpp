#include "frontend/nn/recurrent/gated_delta_net.h"

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

const GatedDeltaNetOptions& checked_delta_net(const GatedDeltaNetOptions& o, const Where& at) {
  for (const auto& [name, value] : {std::pair("key_heads", o.key_heads), std::pair("value_heads", o.value_heads),
                                    std::pair("key_size", o.key_size), std::pair("value_size", o.value_size),
                                    std::pair("conv", o.conv), std::pair("chunk", o.chunk)})
    require_option(at, "GatedDeltaNet", "mixer_options", value >= 1, name, value, "give 1 or more");
  require_option(at, "GatedDeltaNet", "mixer_options", o.value_heads % o.key_heads == 0, "value_heads", o.value_heads,
                 fmt::format("give a multiple of the {} key heads", o.key_heads));
  return o;
}

/// The sizes of all keys and of all values.
std::int64_t keys_of(const GatedDeltaNetOptions& o) { return o.key_heads * o.key_size; }
std::int64_t values_of(const GatedDeltaNetOptions& o) { return o.value_heads * o.value_size; }

/// The logarithms of evenly spaced numbers from 0 to 16, without the ends.
Init initial_delta_decays(std::int64_t heads) {
  std::vector<double> values;
  for (std::int64_t h = 0; h < heads; ++h)
    values.push_back(std::log(16 * (static_cast<double>(h) + 0.5) / static_cast<double>(heads)));
  return Init::values(values);
}

/// Divides each head by its norm, as the kernels of flash-linear-attention do.
Tensor normalized(const Tensor& a) { return a * rsqrt((a * a).sum(-1, true) + 1e-6); }

}  // namespace

GatedDeltaNet::GatedDeltaNet(const Module& parent, std::string_view name, const Dim& d,
                             const GatedDeltaNetOptions& options, Where at)
    : Module(parent, name, "GatedDeltaNet", options.dtype),
      options_(checked_delta_net(options, at)),
      in_qkvz_(*this, "in_proj_qkvz", d, 2 * keys_of(options) + 2 * values_of(options), {.bias = false}, at),
      in_ba_(*this, "in_proj_ba", d, 2 * options.value_heads, {.bias = false}, at),
      conv_(*this, "conv1d", 2 * keys_of(options) + values_of(options), {.size = options.conv, .bias = false}, at),
      dt_bias_(declare("dt_bias", {options.value_heads}, Init::ones(), at)),
      a_log_(declare("A_log", {options.value_heads}, initial_delta_decays(options.value_heads), at)),
      norm_(*this, "norm", options.value_size, {.eps = options.eps}, at),
      out_(*this, "out_proj", values_of(options), d, {.bias = false}, at) {}

Tensor GatedDeltaNet::operator()(const Operand& x) const { return run(x.tensor, {}, x.at).output; }

MixerResults GatedDeltaNet::run(const Tensor& x, const MixerState& state, Where at) const {
  const Scope scope(*this, x, at);
  const GatedDeltaNetOptions& o = options_;
  const Dim batch = x.size(0), length = x.size(1);
  const std::int64_t share = o.value_heads / o.key_heads;  // value heads of a key head
  const Dim values = share * o.value_size;
  // The parts of each key head are neighbours.
  const std::vector<Tensor> heads = in_qkvz_(x)
                                        .reshape({batch, length, o.key_heads, 2 * o.key_size + 2 * values.number()})
                                        .split({o.key_size, o.key_size, values, values}, -1);
  const std::vector<Tensor> gates = in_ba_(x).reshape({batch, length, o.key_heads, 2 * share}).chunk(2, -1);
  const auto flat = [&](const Tensor& a, std::int64_t size) { return a.reshape({batch, length, size}); };
  const CausalConvResults conv = conv_.run(
      concat({flat(heads[0], keys_of(o)), flat(heads[1], keys_of(o)), flat(heads[2], values_of(o))}, -1), state.conv);

  const DType work = x.dtype() == f64 ? f64 : f32;
  const std::vector<Tensor> mixed = silu(conv.output.to(work)).split({keys_of(o), keys_of(o), values_of(o)}, -1);
  const auto keys = [&](const Tensor& a) {
    const Tensor found = normalized(a.reshape({batch, length, o.key_heads, o.key_size}));
    return share > 1 ? found.repeat_interleave(share, 2) : found;
  };
  const auto value_heads = [&](const Tensor& a) {
    return a.reshape({batch, length, o.value_heads, o.value_size}).to(work);
  };
  const Tensor beta = sigmoid(flat(gates[0], o.value_heads).to(work)), raw = flat(gates[1], o.value_heads).to(work);
  const Tensor log_decay = -exp(a_log_.as(raw)) * softplus(raw + dt_bias_.as(raw));
  const RecurrenceResults mixer = gated_delta_rule(keys(mixed[0]), keys(mixed[1]), value_heads(mixed[2]), log_decay,
                                                   beta, {.chunk = o.chunk, .initial = state.recurrence});
  const Tensor gated = norm_(mixer.output) * silu(value_heads(heads[3]));
  return {.output = out_(flat(gated, values_of(o)).to(x.dtype())),
          .state = {.conv = conv.state, .recurrence = mixer.state}};
}

}  // namespace lathe::nn
