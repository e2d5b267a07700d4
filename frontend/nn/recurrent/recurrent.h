#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/nn/module.h"

/// Recurrent layers, as loops over the steps of a sequence. Their parameters have the names and layouts of PyTorch:
/// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, and with the suffix _reverse those of the other direction.
namespace lathe::nn {

struct RecurrentOptions {
  std::int64_t layers = 1;     ///< each one reads the outputs of the one before
  bool bidirectional = false;  ///< a second loop runs from the end; outputs are [.., 2 * hidden]
  bool bias = true;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// The outputs of all steps of the last layer, and the last states of all layers and directions: forward and reverse
/// of layer 0, of layer 1, ..
struct RecurrentResults {
  Tensor output;  ///< [B, T, hidden], or [B, T, 2 * hidden]
  Tensor h;       ///< [layers * directions, B, hidden]
  Tensor c = {};  ///< the same for the cells of an LSTM
};

/// The parameters of one layer in one direction: gates * hidden rows, in the order of the gates.
struct RecurrentWeights {
  Parameter input, hidden;
  std::optional<Parameter> input_bias, hidden_bias;
};

/// The parts that Lstm and Gru share.
class RecurrentModule : public Module {
 protected:
  RecurrentModule(const Module& parent, std::string_view name, std::string_view kind, std::int64_t gates,
                  const Dim& in, const Dim& hidden, const RecurrentOptions& options, const Where& at);
  std::size_t directions() const { return bidirectional_ ? 2 : 1; }

  Dim hidden_;
  bool bidirectional_;
  std::vector<RecurrentWeights> weights_;  // by layer and direction
};

/// Long short-term memory (Hochreiter and Schmidhuber 1997), as torch.nn.LSTM with batch_first: x [B, T, in] ->
/// [B, T, hidden]. Gates in the order i, f, g, o:
///   c[t] = f * c[t-1] + i * g, h[t] = o * tanh(c[t]);  i, f, o: sigmoid, g: tanh, each of W_ih x[t] + W_hh h[t-1] +
///   b
/// Throws UserError [recurrent_options] for a number of layers below 1.
class Lstm : public RecurrentModule {
 public:
  Lstm(const Module& parent, std::string_view name, const Dim& in, const Dim& hidden,
       const RecurrentOptions& options = {}, Where at = Where::current());
  /// Runs from states of zeros and returns the outputs.
  Tensor operator()(const Operand& x) const;
  /// Runs from h and c [layers * directions, B, hidden], or from zeros if they are empty.
  RecurrentResults run(const Tensor& x, const Tensor& h = {}, const Tensor& c = {},
                       Where at = Where::current()) const;
};

/// Gated recurrent unit (Cho et al. 2014), as torch.nn.GRU with batch_first: x [B, T, in] -> [B, T, hidden]. Gates in
/// the order r, z, n:
///   n = tanh(W_in x[t] + b_in + r * (W_hn h[t-1] + b_hn)), h[t] = (1 - z) * n + z * h[t-1];  r, z: sigmoid
class Gru : public RecurrentModule {
 public:
  Gru(const Module& parent, std::string_view name, const Dim& in, const Dim& hidden,
      const RecurrentOptions& options = {}, Where at = Where::current());
  /// Runs from a state of zeros and returns the outputs.
  Tensor operator()(const Operand& x) const;
  /// Runs from h [layers * directions, B, hidden], or from zeros if it is empty.
  RecurrentResults run(const Tensor& x, const Tensor& h = {}, Where at = Where::current()) const;
};

}  // namespace lathe::nn
