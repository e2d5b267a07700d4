#include "frontend/nn/recurrent/recurrent.h"

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "frontend/graph.h"
#include "frontend/nn/recurrent/cells.h"
#include "frontend/nn/require_option.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

CellWeights cell_weights(const RecurrentWeights& weights, const Tensor& x) {
  CellWeights cell{.input = weights.input.as(x), .hidden = weights.hidden.as(x)};
  if (weights.input_bias) {
    cell.input_bias = weights.input_bias->as(x);
    cell.hidden_bias = weights.hidden_bias->as(x);
  }
  return cell;
}

/// Runs all layers and directions over x [B, T, in]. `first`: the states [layers * directions, B, hidden], empty for
/// zeros.
template <class Cell>
RecurrentResults run_all(const Tensor& x, const std::vector<RecurrentWeights>& weights, std::size_t directions,
                         const Dim& hidden, const std::vector<Tensor>& first) {
  std::vector<RecurrentCell> cells;
  std::vector<CellStates> states;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    cells.push_back(Cell{cell_weights(weights[i], x)});
    CellStates& own = states.emplace_back();
    for (const Tensor& given : first)
      own.push_back(given.is_empty() ? x.graph().zeros({x.size(0), hidden}, x.dtype())
                                     : given.select(0, static_cast<std::int64_t>(i)));
  }
  const LayerResults results = run_layers(cells, directions, x.transpose(0, 1), states);
  RecurrentResults all{.output = results.output.transpose(0, 1), .h = results.last[0]};
  if (results.last.size() > 1) all.c = results.last[1];
  return all;
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
  return run_all<LstmCell>(x, weights_, directions(), hidden_, {h, c});
}

Gru::Gru(const Module& parent, std::string_view name, const Dim& in, const Dim& hidden,
         const RecurrentOptions& options, Where at)
    : RecurrentModule(parent, name, "Gru", 3, in, hidden, options, at) {}

Tensor Gru::operator()(const Operand& x) const { return run(x.tensor, {}, x.at).output; }

RecurrentResults Gru::run(const Tensor& x, const Tensor& h, Where at) const {
  const Scope scope(*this, x, at);
  return run_all<GruCell>(x, weights_, directions(), hidden_, {h});
}

}  // namespace lathe::nn
