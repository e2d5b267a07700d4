#include "frontend/nn/recurrent/recurrent.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <string>

#include "frontend/graph.h"
#include "frontend/nn/require_option.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

using Weights = RecurrentWeights;

/// The states of one layer in one direction: h, and for an LSTM c.
using States = std::vector<Tensor>;

/// One layer in one direction: the outputs [T, B, hidden] and the last states.
struct DirectionResults {
  Tensor output;
  States last;
};

/// Returns W_ih x + b for all steps at once: x [B, T, in] -> [T, B, gates * hidden]. `bias` of the hidden product is
/// included where the gates only add it.
Tensor project(const Tensor& x, const Weights& weights, bool with_hidden_bias) {
  const Tensor product = einsum("bti,gi->tbg", {x, weights.input.as(x)});
  if (!weights.input_bias) return product;
  const Tensor bias = weights.input_bias->as(x);
  return product + (with_hidden_bias ? bias + weights.hidden_bias->as(x) : bias);
}

Tensor hidden_product(const Tensor& h, const Weights& weights) {
  return einsum("bh,gh->bg", {h, weights.hidden.as(h)});
}

DirectionResults run_lstm(const Tensor& x, const Weights& weights, const States& first, bool reverse) {
  const LoopResults results =
      scan(first, {project(x, weights, true)},
           [&](std::span<const Tensor> state, std::span<const Tensor> projected) {
             const std::vector<Tensor> gates = (projected[0] + hidden_product(state[0], weights)).chunk(4, -1);
             const Tensor c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
             const Tensor h = sigmoid(gates[3]) * tanh(c);
             return LoopStep{{h, c}, {h}};
           },
           {.name = "lstm", .reverse = reverse});
  return {results.outputs[0], results.carries};
}

DirectionResults run_gru(const Tensor& x, const Weights& weights, const States& first, bool reverse) {
  const LoopResults results = scan(first, {project(x, weights, false)},
                                   [&](std::span<const Tensor> state, std::span<const Tensor> projected) {
                                     const std::vector<Tensor> input = projected[0].chunk(3, -1);
                                     Tensor product = hidden_product(state[0], weights);
                                     if (weights.hidden_bias) product = product + weights.hidden_bias->as(product);
                                     const std::vector<Tensor> hidden = product.chunk(3, -1);
                                     const Tensor r = sigmoid(input[0] + hidden[0]),
                                                  z = sigmoid(input[1] + hidden[1]);
                                     const Tensor n = tanh(input[2] + r * hidden[2]);
                                     const Tensor h = n + z * (state[0] - n);
                                     return LoopStep{{h}, {h}};
                                   },
                                   {.name = "gru", .reverse = reverse});
  return {results.outputs[0], results.carries};
}

using RunDirection = std::function<DirectionResults(const Tensor&, const Weights&, const States&, bool)>;

/// Runs all layers and directions. `first`: the states [layers * directions, B, hidden], empty for zeros.
RecurrentResults run_all(const Tensor& x, const std::vector<Weights>& weights, std::size_t directions,
                         const Dim& hidden, const std::vector<Tensor>& first, const RunDirection& run) {
  Tensor input = x;
  std::vector<std::vector<Tensor>> last(first.size());
  for (std::size_t w = 0; w < weights.size(); w += directions) {
    std::vector<Tensor> outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      States states;
      for (const Tensor& given : first)
        states.push_back(given.is_empty() ? x.graph().zeros({x.size(0), hidden}, x.dtype())
                                          : given.select(0, static_cast<std::int64_t>(w + d)));
      const DirectionResults results = run(input, weights[w + d], states, d == 1);
      outputs.push_back(results.output.transpose(0, 1));
      for (std::size_t s = 0; s < last.size(); ++s) last[s].push_back(results.last[s]);
    }
    input = directions == 1 ? outputs[0] : concat(outputs, -1);
  }
  RecurrentResults results{.output = input, .h = stack(last[0], 0)};
  if (last.size() > 1) results.c = stack(last[1], 0);
  return results;
}

}  // namespace

RecurrentModule::RecurrentModule(const Module& parent, std::string_view name, std::string_view kind,
                                 std::int64_t gates, const Dim& in, const Dim& hidden,
                                 const RecurrentOptions& options, const Where& at)
    : Module(parent, name, kind, options.dtype), hidden_(hidden), bidirectional_(options.bidirectional) {
  require_option(at, kind, "recurrent_options", options.layers >= 1, "layers", options.layers, "give 1 or more");
  const auto known = hidden.value();
  const double bound = known && *known > 0 ? 1 / std::sqrt(static_cast<double>(*known)) : 0;
  const Init init = bound > 0 ? Init::uniform({.low = -bound, .high = bound}) : Init::automatic();
  const Dim rows = Dim(gates) * hidden.unnamed(), directions(static_cast<std::int64_t>(this->directions()));
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    for (std::size_t d = 0; d < this->directions(); ++d) {
      const auto of = [&](std::string_view which) {
        return fmt::format("{}_l{}{}", which, layer, d == 1 ? "_reverse" : "");
      };
      const Dim from = layer == 0 ? in : directions * hidden.unnamed();
      RecurrentWeights weights{.input = declare(of("weight_ih"), {rows, from}, init, at),
                               .hidden = declare(of("weight_hh"), {rows, hidden}, init, at),
                               .input_bias = {},
                               .hidden_bias = {}};
      if (options.bias) {
        weights.input_bias = declare(of("bias_ih"), {rows}, init, at);
        weights.hidden_bias = declare(of("bias_hh"), {rows}, init, at);
      }
      weights_.push_back(std::move(weights));
    }
}

Lstm::Lstm(const Module& parent, std::string_view name, const Dim& in, const Dim& hidden,
           const RecurrentOptions& options, Where at)
    : RecurrentModule(parent, name, "Lstm", 4, in, hidden, options, at) {}

Tensor Lstm::operator()(const Operand& x) const { return run(x.tensor, {}, {}, x.at).output; }

RecurrentResults Lstm::run(const Tensor& x, const Tensor& h, const Tensor& c, Where at) const {
  const Scope scope(*this, x, at);
  return run_all(x, weights_, directions(), hidden_, {h, c}, run_lstm);
}

Gru::Gru(const Module& parent, std::string_view name, const Dim& in, const Dim& hidden,
         const RecurrentOptions& options, Where at)
    : RecurrentModule(parent, name, "Gru", 3, in, hidden, options, at) {}

Tensor Gru::operator()(const Operand& x) const { return run(x.tensor, {}, x.at).output; }

RecurrentResults Gru::run(const Tensor& x, const Tensor& h, Where at) const {
  const Scope scope(*this, x, at);
  return run_all(x, weights_, directions(), hidden_, {h}, run_gru);
}

}  // namespace lathe::nn
