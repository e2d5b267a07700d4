#pragma once

#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "frontend/ops/loops/loops.h"
#include "frontend/tensor.h"

/// The formulas of recurrent cells, and the loops over the steps of a sequence. nn::Lstm and nn::Gru and the
/// importers of ONNX and PyTorch run them; the members of the cells are what these differ in.
namespace lathe::nn {

/// The weights of a cell with G gates: the rows of the gates, one gate after the other.
struct CellWeights {
  Tensor input;                              ///< [G h, in]
  Tensor hidden;                             ///< [G h, h]
  Tensor input_bias = {}, hidden_bias = {};  ///< [G h]; both are empty without biases
};

/// The states of a cell: h, and of an LSTM c: [B, size].
using CellStates = std::vector<Tensor>;

using CellFunction = std::function<Tensor(const Tensor&)>;

/// The functions of a cell: of its gates, of its candidate for the next state, and of the cell of an LSTM.
struct CellFunctions {
  CellFunction gate, candidate, output;
  std::optional<double> clip = {};  ///< limits the operands of `gate` and `candidate` to [-clip, clip]

  /// Returns sigmoid, tanh and tanh.
  static CellFunctions usual();
};

/// Long short-term memory:
///   c[t] = forget * c[t-1] + input * candidate, h[t] = output * tanh(c[t])
struct LstmCell {
  /// The places of the gates in the weights. The default is that of PyTorch.
  struct Gates {
    std::size_t input = 0, forget = 1, candidate = 2, output = 3;
  };
  /// Factors [h] of the cell, which are added to the gates.
  struct Peepholes {
    Tensor input, forget, output;
  };

  CellWeights weights;
  Gates gates = {};
  CellFunctions functions = CellFunctions::usual();
  std::optional<Peepholes> peepholes = {};
  bool couples_gates = false;  ///< the forget gate is 1 - the input gate
  Tensor projection = {};      ///< [p, h]: h[t] is the product with it; empty without one
};

/// Gated recurrent unit:
///   candidate = tanh(W_in x[t] + b_in + reset * (W_hn h[t-1] + b_hn))
///   h[t] = (1 - update) * candidate + update * h[t-1]
struct GruCell {
  CellWeights weights;  ///< of reset, update and candidate
  CellFunctions functions = CellFunctions::usual();
  bool update_is_first = false;  ///< in the weights: update, reset and candidate
  bool resets_product = true;    ///< if not, the reset gate multiplies h[t-1] before the product
};

/// h[t] = tanh(W_ih x[t] + W_hh h[t-1] + b)
struct RnnCell {
  CellWeights weights;
  CellFunctions functions = CellFunctions::usual();  ///< the candidate's is used
};

using RecurrentCell = std::variant<LstmCell, GruCell, RnnCell>;

/// Returns the part of all gates that follows from inputs: x [.., in] -> [.., G h].
Tensor input_gates(const RecurrentCell& cell, const Tensor& x);

/// Returns the states after a step from those before it. `gates` [B, G h] are the input_gates() of the step.
CellStates next_states(const RecurrentCell& cell, std::span<const Tensor> states, const Tensor& gates);

struct CellRun {
  bool reverse = false;  ///< from the last step to the first
  /// Whether a step is before the end of its sequence: bool [T, B, 1]. After the end, the states stay, and the
  /// outputs are 0. Empty: all sequences have T steps.
  Tensor is_within = {};
};

/// Runs a cell over x [T, B, in]. The outputs are h of all steps [T, B, size], the carries the last states.
LoopResults run_cell(const RecurrentCell& cell, const Tensor& x, const CellStates& first, const CellRun& run = {});

/// The outputs of the last layer, and the last states of all layers and directions.
struct LayerResults {
  Tensor output;             ///< [T, B, directions * size]
  std::vector<Tensor> last;  ///< for each state: [layers * directions, B, size]
};

/// Runs layers over x [T, B, in], each of which reads the outputs of the one before. `cells` and their first states
/// are those of layer 0, forward and, for two directions, reverse; of layer 1, ..; `dropout` is the probability of
/// zeros in the inputs of all layers but the first.
LayerResults run_layers(const std::vector<RecurrentCell>& cells, std::size_t directions, const Tensor& x,
                        const std::vector<CellStates>& first, double dropout = 0);

}  // namespace lathe::nn
