#include <fmt/core.h>

#include "frontend/ops/loops/loops.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/sequences/activation_list.h"
#include "models/import/onnx/ops/standard_ops.h"

/// LSTM, GRU and RNN: a loop over the steps for each direction. The products with x are computed for all steps at
/// once.
namespace lathe::onnx {

namespace {

using States = std::vector<Tensor>;

/// The operands of one direction, for G gates: x [T, B, in], weights [G h, in] and [G h, h], biases [G h].
struct Direction {
  Tensor x, weight, hidden_weight;
  Tensor bias = {}, hidden_bias = {};  ///< empty without biases
  Tensor peepholes = {};               ///< of an LSTM: [3 h], for the gates i, o, f; empty without
  std::vector<Activation> functions;
  std::optional<double> clip = {};  ///< limits the operands of the functions of gates to [-clip, clip]
  States first;                     ///< h, and for an LSTM c: [B, h]
  Tensor is_within = {};  ///< bool [T, B, 1]: whether a step is before the end of its sequence; empty: all are
  bool reverse = false;

  /// Applies function `i` to gates.
  Tensor activated(std::size_t i, const Tensor& gates) const {
    return functions[i](clip ? clamp(gates, -*clip, *clip) : gates);
  }
};

/// Computes the next states from those before and the product of x with the weight, [B, G h].
using Step = std::function<States(const Direction&, std::span<const Tensor> states, const Tensor& projected)>;

/// Returns the gates of states: h times rows [first, last) of the gates of the hidden weight, plus their biases.
Tensor hidden_product(const Direction& part, const Tensor& h, std::int64_t first, std::int64_t last) {
  const Dim size = h.size(-1).unnamed(), from = Dim(first) * size, to = Dim(last) * size;
  const Tensor product = einsum("bh,gh->bg", {h, part.hidden_weight.slice(0, from, to)});
  return part.hidden_bias.is_empty() ? product : product + part.hidden_bias.slice(0, from, to);
}

/// After the end of a sequence, the states stay and the outputs are 0. In reverse, the states stay until its end.
LoopResults run(const Direction& part, const Step& step) {
  Tensor projected = einsum("tbi,gi->tbg", {part.x, part.weight});
  if (!part.bias.is_empty()) projected = projected + part.bias;
  std::vector<Tensor> sequences{projected};
  if (!part.is_within.is_empty()) sequences.push_back(part.is_within);
  return scan(part.first, sequences,
              [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
                States next = step(part, states, elements[0]);
                if (part.is_within.is_empty()) return LoopStep{next, {next[0]}};
                const Tensor output = where(elements[1], next[0], 0);
                for (std::size_t i = 0; i < next.size(); ++i) next[i] = where(elements[1], next[i], states[i]);
                return LoopStep{next, {output}};
              },
              {.reverse = part.reverse});
}

States lstm_step(const Direction& part, bool couples_gates, std::span<const Tensor> states, const Tensor& projected) {
  const Tensor &h = states[0], &c = states[1];
  const std::vector<Tensor> gates = (projected + hidden_product(part, h, 0, 4)).chunk(4, -1);  // i, o, f, c
  std::vector<Tensor> peepholes;
  if (!part.peepholes.is_empty()) peepholes = part.peepholes.chunk(3, 0);
  const auto seen = [&](std::size_t gate, const Tensor& cell) {
    return peepholes.empty() ? gates[gate] : gates[gate] + peepholes[gate] * cell;
  };
  const Tensor input = part.activated(0, seen(0, c));
  const Tensor forget = couples_gates ? 1.0 - input : part.activated(0, seen(2, c));
  const Tensor next = forget * c + input * part.activated(1, gates[3]);
  // As in ONNX Runtime, the cell itself is not clipped.
  return {part.activated(0, seen(1, next)) * part.functions[2](next), next};
}

/// `resets_product`: the reset gate multiplies the product of h and not h itself (linear_before_reset).
States gru_step(const Direction& part, bool resets_product, std::span<const Tensor> states, const Tensor& projected) {
  const Tensor& h = states[0];
  const std::vector<Tensor> input = projected.chunk(3, -1);  // z, r, h
  const std::vector<Tensor> hidden = hidden_product(part, h, 0, 2).chunk(2, -1);
  const Tensor update = part.activated(0, input[0] + hidden[0]), reset = part.activated(0, input[1] + hidden[1]);
  const Tensor product =
      resets_product ? reset * hidden_product(part, h, 2, 3) : hidden_product(part, reset * h, 2, 3);
  const Tensor candidate = part.activated(1, input[2] + product);
  return {candidate + update * (h - candidate)};
}

States rnn_step(const Direction& part, std::span<const Tensor> states, const Tensor& projected) {
  return {part.activated(0, projected + hidden_product(part, states[0], 0, 1))};
}

struct Directions {
  std::size_t count = 1;
  bool first_is_reverse = false;
};
Directions directions_of(const OpCall& call) {
  const std::string name = call.text("direction", "forward");
  if (name == "forward") return {};
  if (name == "reverse") return {.first_is_reverse = true};
  if (name == "bidirectional") return {.count = 2};
  call.fail(fmt::format("the attribute direction is '{}', not forward, reverse or bidirectional", name),
            "import_attribute");
}

void require_shape(const OpCall& call, std::size_t i, const Shape& shape) {
  if (call.operand(i).shape() != shape)
    call.fail(
        fmt::format("operand {} has the shape {}, not {}", i, call.operand(i).shape().to_string(), shape.to_string()),
        "import_operand");
}

/// What LSTM, GRU and RNN have in common. Their operands are x, W, R, B, sequence_lens, initial_h, and for an LSTM
/// initial_c and P.
class Recurrence {
 public:
  Recurrence(const OpCall& call, std::int64_t gates, const std::vector<std::string>& activations)
      : call_(call), directions_(directions_of(call)), batch_is_first_(call.flag("layout", false)) {
    x_ = call.tensor(0);
    const Tensor hidden = call.tensor(2);
    if (x_.rank() != 3 || hidden.rank() != 3) call.fail("x or R has not 3 dims", "import_operand");
    if (batch_is_first_) x_ = x_.transpose(0, 1);
    hidden_ = hidden.size(2).unnamed();
    if (call.has("hidden_size") && hidden_ != Dim(call.integer("hidden_size")))
      call.fail(fmt::format("the attribute hidden_size is {}, and R has the size {}", call.integer("hidden_size"),
                            hidden_.to_string()),
                "import_attribute");
    const Dim count(static_cast<std::int64_t>(directions_.count)), rows = Dim(gates) * hidden_;
    require_shape(call, 1, {count, rows, x_.size(2).unnamed()});
    require_shape(call, 2, {count, rows, hidden_});
    if (call.has(3)) require_shape(call, 3, {count, Dim(2) * rows});
    functions_ = activation_list(call, activations, directions_.count);
    if (call.has("clip")) clip_ = call.real("clip");
    if (clip_ && !(*clip_ > 0)) call.fail("the attribute clip is not positive", "import_attribute");
    if (call.has(4)) is_within_ = is_within();
  }

  /// Returns Y, Y_h and, with two states, Y_c. `initial`: the operands of the first states; zeros if not given.
  Results results(const std::vector<std::size_t>& initial, const Step& step) const {
    std::vector<Tensor> outputs;
    std::vector<std::vector<Tensor>> last(initial.size());
    for (std::size_t d = 0; d < directions_.count; ++d) {
      const LoopResults loop = run(direction(d, initial), step);
      outputs.push_back(loop.outputs[0]);
      for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(loop.carries[i]);
    }
    const Tensor y = stack(outputs, 1);  // [T, D, B, h]
    Results all{batch_is_first_ ? y.permute({2, 0, 1, 3}) : y};
    for (const std::vector<Tensor>& states : last) all.emplace_back(stack(states, batch_is_first_ ? 1 : 0));
    return all;
  }

 private:
  Direction direction(std::size_t d, const std::vector<std::size_t>& initial) const {
    const auto at = static_cast<std::int64_t>(d);
    const std::size_t each = functions_.size() / directions_.count;
    const auto begin = functions_.begin() + static_cast<std::ptrdiff_t>(d * each);
    Direction part{.x = x_,
                   .weight = call_.tensor(1).select(0, at),
                   .hidden_weight = call_.tensor(2).select(0, at),
                   .functions = {begin, begin + static_cast<std::ptrdiff_t>(each)},
                   .clip = clip_,
                   .first = {},
                   .is_within = is_within_,
                   .reverse = d == 1 || directions_.first_is_reverse};
    if (call_.has(3)) {
      const std::vector<Tensor> biases = call_.tensor(3).select(0, at).chunk(2, 0);
      part.bias = biases[0];
      part.hidden_bias = biases[1];
    }
    if (call_.has(7)) part.peepholes = call_.tensor(7).select(0, at);
    for (const std::size_t i : initial)
      part.first.push_back(call_.has(i) ? call_.tensor(i).select(batch_is_first_ ? 1 : 0, at)
                                        : call_.graph().zeros({x_.size(1), hidden_}, x_.dtype()));
    return part;
  }

  /// Returns bool [T, B, 1] from the lengths of the sequences [B].
  Tensor is_within() const {
    const Tensor lengths = call_.tensor(4).to(i64);
    return call_.graph().arange(x_.size(0), i64).reshape({x_.size(0), 1, 1}) < lengths.reshape({1, x_.size(1), 1});
  }

  const OpCall& call_;
  Directions directions_;
  bool batch_is_first_;  // layout 1: x [B, T, in], y [B, T, D, h], states [B, D, h]
  Tensor x_, is_within_;
  Dim hidden_ = 0;
  std::vector<Activation> functions_;
  std::optional<double> clip_;
};

Results lstm_op(const OpCall& call) {
  const Recurrence recurrence(call, 4, {"Sigmoid", "Tanh", "Tanh"});
  const bool couples_gates = call.flag("input_forget", false);
  return recurrence.results({5, 6},
                            [=](const Direction& part, std::span<const Tensor> states, const Tensor& projected) {
                              return lstm_step(part, couples_gates, states, projected);
                            });
}

Results gru_op(const OpCall& call) {
  const Recurrence recurrence(call, 3, {"Sigmoid", "Tanh"});
  const bool resets_product = call.integer("linear_before_reset", 0) != 0;
  return recurrence.results({5}, [=](const Direction& part, std::span<const Tensor> states, const Tensor& projected) {
    return gru_step(part, resets_product, states, projected);
  });
}

Results rnn_op(const OpCall& call) { return Recurrence(call, 1, {"Tanh"}).results({5}, rnn_step); }

}  // namespace

std::span<const OpRecord> recurrent_ops() {
  static constexpr OpRecord records[] = {
      {"LSTM", 7, 13, "activation_alpha activation_beta activations clip direction hidden_size input_forget",
       lstm_op},
      {"LSTM", 14, latest,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget layout", lstm_op},
      {"GRU", 7, 13, "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset",
       gru_op},
      {"GRU", 14, latest,
       "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset", gru_op},
      {"RNN", 7, 13, "activation_alpha activation_beta activations clip direction hidden_size", rnn_op},
      {"RNN", 14, latest, "activation_alpha activation_beta activations clip direction hidden_size layout", rnn_op},
  };
  return records;
}

}  // namespace lathe::onnx
