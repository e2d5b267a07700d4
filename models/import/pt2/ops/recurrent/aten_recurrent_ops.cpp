#include <fmt/core.h>

#include "frontend/nn/recurrent/cells.h"
#include "frontend/ops/derived_ops.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Recurrent layers and cells.
namespace lathe::pt2 {

namespace {

using nn::CellStates;
using nn::CellWeights;
using nn::RecurrentCell;

/// The kinds of layers: the cell of weights. Only that of an LSTM may have a projection.
RecurrentCell lstm(const CellWeights& weights, const Tensor& projection) {
  return nn::LstmCell{.weights = weights, .projection = projection};
}
RecurrentCell gru(const CellWeights& weights, const Tensor&) { return nn::GruCell{weights}; }
RecurrentCell rnn_tanh(const CellWeights& weights, const Tensor&) { return nn::RnnCell{weights}; }
RecurrentCell rnn_relu(const CellWeights& weights, const Tensor&) {
  nn::RnnCell cell{weights};
  cell.functions.candidate = [](const Tensor& x) { return relu(x); };
  return cell;
}

using CellKind = RecurrentCell (*)(const CellWeights& weights, const Tensor& projection);

/// The cells of all layers and directions, from the list of their weights.
template <CellKind kind>
std::vector<RecurrentCell> cells_of(const OpCall& call, std::int64_t count) {
  const std::vector<Value> weights = call.group(2);
  const bool has_biases = call.flag("has_biases", true);
  const std::size_t all = weights.size(), parts = static_cast<std::size_t>(count), plain = has_biases ? 4 : 2;
  const std::size_t each = parts == 0 ? 0 : all / parts;
  if (parts == 0 || all != each * parts || (each != plain && (kind != lstm || each != plain + 1)))
    call.fail(fmt::format("{} weights for {} layers and directions", all, count), "import_operand");
  std::vector<RecurrentCell> cells;
  for (std::size_t i = 0; i < all; i += each) {
    const auto weight = [&](std::size_t k) { return weights[i + k].in(call.graph()); };
    CellWeights cell{.input = weight(0), .hidden = weight(1)};
    if (has_biases) cell.input_bias = weight(2), cell.hidden_bias = weight(3);
    cells.push_back(kind(cell, each > plain ? weight(plain) : Tensor()));
  }
  return cells;
}

/// Returns the outputs of the last layer, and the last states of all layers and directions.
template <CellKind kind>
Results layers(const OpCall& call) {
  const std::int64_t count = call.integer("num_layers");
  const bool is_batch_first = call.flag("batch_first", false), is_training = call.flag("train", false);
  const double p = real_argument(call, "dropout", 0);
  const std::size_t directions = call.flag("bidirectional", false) ? 2 : 1;
  const std::vector<RecurrentCell> cells = cells_of<kind>(call, count * static_cast<std::int64_t>(directions));
  const Tensor x = call.tensor(0);
  if (x.rank() != 3) call.fail(fmt::format("the input has {} dims", x.rank()), "import_operand");
  const std::vector<Value> given = call.group(1);
  if (given.size() != (kind == lstm ? 2u : 1u)) call.fail("another number of states", "import_operand");
  std::vector<CellStates> first(cells.size());
  for (const Value& state : given)
    for (std::size_t i = 0; i < cells.size(); ++i)
      first[i].push_back(state.in(call.graph()).select(0, static_cast<std::int64_t>(i)));
  const nn::LayerResults layers =
      nn::run_layers(cells, directions, is_batch_first ? x.transpose(0, 1) : x, first, is_training ? p : 0);
  Results results{is_batch_first ? layers.output.transpose(0, 1) : layers.output};
  results.insert(results.end(), layers.last.begin(), layers.last.end());
  return results;
}

/// One step. The operands are the input, the states, and the weights.
template <CellKind kind>
Results cell(const OpCall& call) {
  const std::size_t count = kind == lstm ? 2 : 1, weights = 1 + count;
  if (call.group(1).size() != count) call.fail("another number of states", "import_operand");
  CellStates states;
  for (std::size_t i = 0; i < count; ++i) states.push_back(call.tensor(1 + i));
  const CellWeights given{call.tensor(weights), call.tensor(weights + 1), optional_tensor(call, weights + 2),
                          optional_tensor(call, weights + 3)};
  if (given.input_bias.is_empty() != given.hidden_bias.is_empty())
    call.fail("one of the biases is missing", "import_operand");
  Tensor x = call.tensor(0);
  const bool has_batch = x.rank() == 2;
  if (!has_batch) {
    x = x.unsqueeze(0);
    for (Tensor& state : states) state = state.unsqueeze(0);
  }
  const RecurrentCell cell = kind(given, {});
  Results results;
  for (const Tensor& state : nn::next_states(cell, states, nn::input_gates(cell, x)))
    results.emplace_back(has_batch ? state : state.squeeze(0));
  return results;
}

}  // namespace

std::span<const OpRecord> aten_recurrent_ops() {
  constexpr std::string_view options = "has_biases num_layers dropout train bidirectional batch_first";
  constexpr std::string_view of_cell = "input hx w_ih w_hh b_ih b_hh";
  static constexpr OpRecord records[] = {
      aten("lstm.input", "input hx params", options, layers<lstm>),
      aten("gru.input", "input hx params", options, layers<gru>),
      aten("rnn_tanh.input", "input hx params", options, layers<rnn_tanh>),
      aten("rnn_relu.input", "input hx params", options, layers<rnn_relu>),
      aten("lstm_cell", of_cell, "", cell<lstm>),
      aten("gru_cell", of_cell, "", cell<gru>),
      aten("rnn_tanh_cell", of_cell, "", cell<rnn_tanh>),
      aten("rnn_relu_cell", of_cell, "", cell<rnn_relu>),
  };
  return records;
}

}  // namespace lathe::pt2
