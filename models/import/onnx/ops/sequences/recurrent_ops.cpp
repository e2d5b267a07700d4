#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "frontend/nn/recurrent/cells.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/sequences/activation_list.h"
#include "models/import/onnx/ops/standard_ops.h"

/// LSTM, GRU and RNN: a loop over the steps for each direction. The products with x are computed for all steps at
/// once.
namespace lathe::onnx {

namespace {

using nn::CellFunctions;
using nn::CellWeights;
using nn::RecurrentCell;

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

/// The parts of an op in one direction that a cell is made of.
struct Direction {
  CellWeights weights;
  CellFunctions functions;
  Tensor peepholes = {};  ///< [3 h], for the gates input, output and forget; empty without
};
using MakeCell = std::function<RecurrentCell(const Direction&)>;

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
    activations_ = activation_list(call, activations, directions_.count);
    if (call.has("clip")) clip_ = call.real("clip");
    if (clip_ && !(*clip_ > 0)) call.fail("the attribute clip is not positive", "import_attribute");
    if (call.has(4)) is_within_ = is_within();
  }

  /// Returns Y, Y_h and, with two states, Y_c. `initial`: the operands of the first states; zeros if not given.
  Results results(const std::vector<std::size_t>& initial, const MakeCell& make_cell) const {
    std::vector<Tensor> outputs;
    std::vector<std::vector<Tensor>> last(initial.size());
    for (std::size_t d = 0; d < directions_.count; ++d) {
      const LoopResults loop =
          nn::run_cell(make_cell(direction(d)), x_, first_states(d, initial),
                       {.reverse = d == 1 || directions_.first_is_reverse, .is_within = is_within_});
      outputs.push_back(loop.outputs[0]);
      for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(loop.carries[i]);
    }
    const Tensor y = stack(outputs, 1);  // [T, D, B, h]
    Results all{batch_is_first_ ? y.permute({2, 0, 1, 3}) : y};
    for (const std::vector<Tensor>& states : last) all.emplace_back(stack(states, batch_is_first_ ? 1 : 0));
    return all;
  }

 private:
  Direction direction(std::size_t d) const {
    const auto at = static_cast<std::int64_t>(d);
    const std::size_t each = activations_.size() / directions_.count;
    // An RNN has one function, which is that of its candidate.
    const auto function = [&](std::size_t i) { return activations_[d * each + std::min(i, each - 1)]; };
    Direction part{.weights = {.input = call_.tensor(1).select(0, at), .hidden = call_.tensor(2).select(0, at)},
                   .functions = {function(0), function(1), function(2), clip_}};
    if (call_.has(3)) {
      const std::vector<Tensor> biases = call_.tensor(3).select(0, at).chunk(2, 0);
      part.weights.input_bias = biases[0];
      part.weights.hidden_bias = biases[1];
    }
    if (call_.has(7)) part.peepholes = call_.tensor(7).select(0, at);
    return part;
  }

  nn::CellStates first_states(std::size_t d, const std::vector<std::size_t>& initial) const {
    nn::CellStates first;
    for (const std::size_t i : initial)
      first.push_back(call_.has(i) ? call_.tensor(i).select(batch_is_first_ ? 1 : 0, static_cast<std::int64_t>(d))
                                   : call_.graph().zeros({x_.size(1), hidden_}, x_.dtype()));
    return first;
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
  std::vector<nn::CellFunction> activations_;
  std::optional<double> clip_;
};

Results lstm_op(const OpCall& call) {
  const Recurrence recurrence(call, 4, {"Sigmoid", "Tanh", "Tanh"});
  const bool couples_gates = call.flag("input_forget", false);
  return recurrence.results({5, 6}, [&](const Direction& part) {
    nn::LstmCell cell{.weights = part.weights,
                      .gates = {.input = 0, .forget = 2, .candidate = 3, .output = 1},
                      .functions = part.functions,
                      .couples_gates = couples_gates};
    if (!part.peepholes.is_empty()) {
      const std::vector<Tensor> each = part.peepholes.chunk(3, 0);
      cell.peepholes = {.input = each[0], .forget = each[2], .output = each[1]};
    }
    return cell;
  });
}

Results gru_op(const OpCall& call) {
  const Recurrence recurrence(call, 3, {"Sigmoid", "Tanh"});
  const bool resets_product = call.integer("linear_before_reset", 0) != 0;
  return recurrence.results(
      {5}, [&](const Direction& part) { return nn::GruCell{part.weights, part.functions, true, resets_product}; });
}

Results rnn_op(const OpCall& call) {
  return Recurrence(call, 1, {"Tanh"}).results({5}, [](const Direction& part) {
    return nn::RnnCell{part.weights, part.functions};
  });
}

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
