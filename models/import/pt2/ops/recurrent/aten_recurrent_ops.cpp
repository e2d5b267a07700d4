#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Recurrent layers: a loop over the steps for each layer and direction. The products with the inputs are computed
/// for all steps at once.
namespace lathe::pt2 {

namespace {

enum class RecurrentKind : std::uint8_t { lstm, gru, rnn_tanh, rnn_relu };

/// The weights of a layer in one direction: the rows of its gates, one after the other.
struct Layer {
  Tensor input, hidden;
  Tensor input_bias = {}, hidden_bias = {};
  Tensor projection = {};  ///< of an LSTM: its output is the projection of h
};

/// h, and for an LSTM c: [B, size].
using States = std::vector<Tensor>;

/// The reset gate of a GRU multiplies the bias of the hidden product, so the inputs cannot have it.
bool joins_biases(RecurrentKind kind) { return kind != RecurrentKind::gru; }

/// Returns the gates of inputs [.., in]: their product, and the biases.
Tensor input_gates(RecurrentKind kind, const Layer& layer, const Tensor& x) {
  const Tensor product = linear(x, layer.input);
  if (layer.input_bias.is_empty()) return product;
  return product + (joins_biases(kind) ? layer.input_bias + layer.hidden_bias : layer.input_bias);
}

Tensor hidden_gates(RecurrentKind kind, const Layer& layer, const Tensor& h) {
  const Tensor product = linear(h, layer.hidden);
  return layer.hidden_bias.is_empty() || joins_biases(kind) ? product : product + layer.hidden_bias;
}

/// Computes the next states from the gates of the input.
States next_states(RecurrentKind kind, const Layer& layer, std::span<const Tensor> states, const Tensor& given) {
  const Tensor& h = states[0];
  const Tensor product = hidden_gates(kind, layer, h);
  switch (kind) {
    case RecurrentKind::rnn_tanh: return {tanh(given + product)};
    case RecurrentKind::rnn_relu: return {relu(given + product)};
    case RecurrentKind::gru: {
      const std::vector<Tensor> input = given.chunk(3, -1), hidden = product.chunk(3, -1);  // reset, update, new
      const Tensor reset = sigmoid(input[0] + hidden[0]), update = sigmoid(input[1] + hidden[1]);
      const Tensor candidate = tanh(input[2] + reset * hidden[2]);
      return {candidate + update * (h - candidate)};
    }
    case RecurrentKind::lstm: break;
  }
  const std::vector<Tensor> gates = (given + product).chunk(4, -1);  // input, forget, cell, output
  const Tensor c = sigmoid(gates[1]) * states[1] + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor next = sigmoid(gates[3]) * tanh(c);
  return {layer.projection.is_empty() ? next : linear(next, layer.projection), c};
}

/// Runs a layer over x [T, B, in]. The outputs are the states h [T, B, size].
LoopResults run(RecurrentKind kind, const Layer& layer, const Tensor& x, const States& first, bool reverse) {
  return scan(first, {input_gates(kind, layer, x)},
              [&](std::span<const Tensor> states, std::span<const Tensor> gates) {
                const States next = next_states(kind, layer, states, gates[0]);
                return LoopStep{next, {next[0]}};
              },
              {.reverse = reverse});
}

/// The layers of both directions, one after the other, from the list of their weights.
std::vector<Layer> layers_of(const OpCall& call, RecurrentKind kind, std::int64_t count) {
  const std::vector<Value> weights = call.group(2);
  const bool has_biases = call.flag("has_biases", true);
  const std::size_t all = weights.size(), parts = static_cast<std::size_t>(count), plain = has_biases ? 4 : 2;
  const std::size_t each = parts == 0 ? 0 : all / parts;
  if (parts == 0 || all != each * parts || (each != plain && (kind != RecurrentKind::lstm || each != plain + 1)))
    call.fail(fmt::format("{} weights for {} layers and directions", all, count), "import_operand");
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < all; i += each) {
    const auto weight = [&](std::size_t k) { return weights[i + k].in(call.graph()); };
    Layer layer{weight(0), weight(1)};
    if (has_biases) layer.input_bias = weight(2), layer.hidden_bias = weight(3);
    if (each > plain) layer.projection = weight(plain);
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Returns the outputs of the last layer, and the last states of all layers and directions.
Results recurrent(const OpCall& call, RecurrentKind kind) {
  const std::int64_t count = call.integer("num_layers");
  const bool is_batch_first = call.flag("batch_first", false), is_training = call.flag("train", false);
  const double p = real_argument(call, "dropout", 0);
  const std::size_t directions = call.flag("bidirectional", false) ? 2 : 1;
  const std::vector<Layer> layers = layers_of(call, kind, count * static_cast<std::int64_t>(directions));
  Tensor x = call.tensor(0);
  if (x.rank() != 3) call.fail(fmt::format("the input has {} dims", x.rank()), "import_operand");
  if (is_batch_first) x = x.transpose(0, 1);
  States first;
  for (const Value& state : call.group(1)) first.push_back(state.in(call.graph()));
  if (first.size() != (kind == RecurrentKind::lstm ? 2u : 1u))
    call.fail("another number of states", "import_operand");
  std::vector<States> last(first.size());
  for (std::size_t i = 0; i < layers.size(); i += directions) {
    if (i > 0 && is_training && p > 0) x = dropout(x, p);
    std::vector<Tensor> outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      States states;
      for (const Tensor& state : first) states.push_back(state.select(0, static_cast<std::int64_t>(i + d)));
      const LoopResults results = run(kind, layers[i + d], x, states, d == 1);
      outputs.push_back(results.outputs[0]);
      for (std::size_t s = 0; s < last.size(); ++s) last[s].push_back(results.carries[s]);
    }
    x = directions == 1 ? outputs[0] : concat(outputs, -1);
  }
  Results results{is_batch_first ? x.transpose(0, 1) : x};
  for (const States& states : last) results.emplace_back(stack(states, 0));
  return results;
}
template <RecurrentKind kind>
Results layers(const OpCall& call) {
  return recurrent(call, kind);
}

/// One step. The operands are the input, the states, and the weights.
template <RecurrentKind kind>
Results cell(const OpCall& call) {
  const std::size_t count = kind == RecurrentKind::lstm ? 2 : 1, weights = 1 + count;
  if (call.group(1).size() != count) call.fail("another number of states", "import_operand");
  States states;
  for (std::size_t i = 0; i < count; ++i) states.push_back(call.tensor(1 + i));
  const Layer layer{call.tensor(weights), call.tensor(weights + 1), optional_tensor(call, weights + 2),
                    optional_tensor(call, weights + 3)};
  if (layer.input_bias.is_empty() != layer.hidden_bias.is_empty())
    call.fail("one of the biases is missing", "import_operand");
  Tensor x = call.tensor(0);
  const bool has_batch = x.rank() == 2;
  if (!has_batch) {
    x = x.unsqueeze(0);
    for (Tensor& state : states) state = state.unsqueeze(0);
  }
  Results results;
  for (const Tensor& state : next_states(kind, layer, states, input_gates(kind, layer, x)))
    results.emplace_back(has_batch ? state : state.squeeze(0));
  return results;
}

}  // namespace

std::span<const OpRecord> aten_recurrent_ops() {
  constexpr std::string_view options = "has_biases num_layers dropout train bidirectional batch_first";
  constexpr std::string_view of_cell = "input hx w_ih w_hh b_ih b_hh";
  static constexpr OpRecord records[] = {
      aten("lstm.input", "input hx params", options, layers<RecurrentKind::lstm>),
      aten("gru.input", "input hx params", options, layers<RecurrentKind::gru>),
      aten("rnn_tanh.input", "input hx params", options, layers<RecurrentKind::rnn_tanh>),
      aten("rnn_relu.input", "input hx params", options, layers<RecurrentKind::rnn_relu>),
      aten("lstm_cell", of_cell, "", cell<RecurrentKind::lstm>),
      aten("gru_cell", of_cell, "", cell<RecurrentKind::gru>),
      aten("rnn_tanh_cell", of_cell, "", cell<RecurrentKind::rnn_tanh>),
      aten("rnn_relu_cell", of_cell, "", cell<RecurrentKind::rnn_relu>),
  };
  return records;
}

}  // namespace lathe::pt2
