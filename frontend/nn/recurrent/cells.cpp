#include "frontend/nn/recurrent/cells.h"

#include "frontend/ops/derived_ops.h"

namespace lathe::nn {

namespace {

Tensor limited(const CellFunctions& functions, const Tensor& gate) {
  return functions.clip ? clamp(gate, -*functions.clip, *functions.clip) : gate;
}
Tensor gate_of(const CellFunctions& functions, const Tensor& gate) {
  return functions.gate(limited(functions, gate));
}
Tensor candidate_of(const CellFunctions& functions, const Tensor& gate) {
  return functions.candidate(limited(functions, gate));
}

const CellWeights& weights_of(const RecurrentCell& cell) {
  return std::visit([](const auto& each) -> const CellWeights& { return each.weights; }, cell);
}

/// The reset gate of a GRU multiplies the bias of the hidden product, so the inputs cannot have it.
bool joins_biases(const RecurrentCell& cell) {
  const auto* const gru = std::get_if<GruCell>(&cell);
  return !gru || !gru->resets_product;
}

/// A step of each cell.
struct Step {
  std::span<const Tensor> states;
  const Tensor& input;  ///< the gates of the inputs

  CellStates operator()(const LstmCell& cell) const {
    const Tensor& c = states[1];
    const std::vector<Tensor> gates = (input + linear(states[0], cell.weights.hidden)).chunk(4, -1);
    const CellFunctions& functions = cell.functions;
    const auto gate = [&](std::size_t place, Tensor LstmCell::Peepholes::* peephole, const Tensor& seen) {
      const Tensor& sum = gates[place];
      return gate_of(functions, cell.peepholes ? sum + (*cell.peepholes).*peephole * seen : sum);
    };
    const Tensor taken = gate(cell.gates.input, &LstmCell::Peepholes::input, c);
    const Tensor kept = cell.couples_gates ? 1.0 - taken : gate(cell.gates.forget, &LstmCell::Peepholes::forget, c);
    const Tensor next = kept * c + taken * candidate_of(functions, gates[cell.gates.candidate]);
    // As in ONNX Runtime, the cell itself is not clipped.
    const Tensor h = gate(cell.gates.output, &LstmCell::Peepholes::output, next) * functions.output(next);
    return {cell.projection.is_empty() ? h : linear(h, cell.projection), next};
  }

  CellStates operator()(const GruCell& cell) const {
    const Tensor &h = states[0], &weight = cell.weights.hidden;
    const std::vector<Tensor> given = input.chunk(3, -1);
    const Dim last = Dim(2) * h.size(-1).unnamed();  // the first row of the candidate
    Tensor product = linear(h, cell.resets_product ? weight : weight.slice(0, 0, last));
    if (cell.resets_product && !cell.weights.hidden_bias.is_empty()) product = product + cell.weights.hidden_bias;
    const std::vector<Tensor> hidden = product.chunk(cell.resets_product ? 3 : 2, -1);
    const std::size_t reset_place = cell.update_is_first ? 1 : 0, update_place = 1 - reset_place;
    const auto gate = [&](std::size_t place) { return gate_of(cell.functions, given[place] + hidden[place]); };
    const Tensor reset = gate(reset_place), update = gate(update_place);
    const Tensor candidate =
        candidate_of(cell.functions,
                     given[2] + (cell.resets_product ? reset * hidden[2] : linear(reset * h, weight.slice(0, last))));
    return {candidate + update * (h - candidate)};
  }

  CellStates operator()(const RnnCell& cell) const {
    return {candidate_of(cell.functions, input + linear(states[0], cell.weights.hidden))};
  }
};

}  // namespace

CellFunctions CellFunctions::usual() {
  const auto hyperbolic = [](const Tensor& x) { return tanh(x); };
  return {.gate = [](const Tensor& x) { return sigmoid(x); }, .candidate = hyperbolic, .output = hyperbolic};
}

Tensor input_gates(const RecurrentCell& cell, const Tensor& x) {
  const CellWeights& weights = weights_of(cell);
  const Tensor product = linear(x, weights.input);
  if (weights.input_bias.is_empty()) return product;
  return product + (joins_biases(cell) ? weights.input_bias + weights.hidden_bias : weights.input_bias);
}

CellStates next_states(const RecurrentCell& cell, std::span<const Tensor> states, const Tensor& gates) {
  return std::visit(Step{states, gates}, cell);
}

LoopResults run_cell(const RecurrentCell& cell, const Tensor& x, const CellStates& first, const CellRun& run) {
  constexpr std::string_view names[] = {"lstm", "gru", "rnn"};
  std::vector<Tensor> sequences{input_gates(cell, x)};
  if (!run.is_within.is_empty()) sequences.push_back(run.is_within);
  return scan(first, sequences,
              [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
                CellStates next = next_states(cell, states, elements[0]);
                if (elements.size() == 1) return LoopStep{next, {next[0]}};
                const Tensor& is_within = elements[1];
                const Tensor output = where(is_within, next[0], 0);
                for (std::size_t i = 0; i < next.size(); ++i) next[i] = where(is_within, next[i], states[i]);
                return LoopStep{next, {output}};
              },
              {.name = names[cell.index()], .reverse = run.reverse});
}

LayerResults run_layers(const std::vector<RecurrentCell>& cells, std::size_t directions, const Tensor& x,
                        const std::vector<CellStates>& first, double dropout) {
  LayerResults results{.output = x, .last = {}};
  std::vector<CellStates> last(first.at(0).size());
  for (std::size_t i = 0; i < cells.size(); i += directions) {
    const Tensor input = i > 0 && dropout > 0 ? lathe::dropout(results.output, dropout) : results.output;
    std::vector<Tensor> outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      const LoopResults loop = run_cell(cells[i + d], input, first[i + d], {.reverse = d == 1});
      outputs.push_back(loop.outputs[0]);
      for (std::size_t s = 0; s < last.size(); ++s) last[s].push_back(loop.carries[s]);
    }
    results.output = directions == 1 ? outputs[0] : concat(outputs, -1);
  }
  for (const CellStates& states : last) results.last.push_back(stack(states, 0));
  return results;
}

}  // namespace lathe::nn
