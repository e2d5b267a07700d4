#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Ops of ONNX Runtime's domain com.microsoft, to which its optimizer fuses nodes.
namespace lathe::onnx {

namespace {

Results fast_gelu(const OpCall& call) {
  return {gelu(call.has(1) ? call.tensor(0) + call.tensor(1) : call.tensor(0), true)};
}

Results bias_gelu(const OpCall& call) { return {gelu(call.tensor(0) + call.tensor(1))}; }

Results exact_gelu(const OpCall& call) { return {gelu(call.tensor(0))}; }

Results quick_gelu(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x * sigmoid(x * call.real("alpha", 1.702))};
}

/// The sum of the input, the skipped connection and a bias.
Tensor skipped_sum(const OpCall& call, std::size_t bias) {
  const Tensor sum = call.tensor(0) + call.tensor(1);
  return call.has(bias) ? sum + call.tensor(bias) : sum;
}

/// Results 1 and 2, of training, are not computed. The sum is result 3.
Results skip_layer_norm(const OpCall& call) {
  const Tensor sum = skipped_sum(call, 4), weight = call.tensor(2);
  const double epsilon = call.real("epsilon", 1e-12);
  const Tensor bias = call.has(3) ? call.tensor(3) : call.graph().zeros(weight.shape(), weight.dtype());
  return {layer_norm(sum, weight, bias, epsilon), Value(), Value(), sum};
}

Results skip_rms_norm(const OpCall& call) {
  const Tensor sum = skipped_sum(call, 3);
  return {rms_norm(sum, call.tensor(2), call.real("epsilon", 1e-12)), Value(), Value(), sum};
}

}  // namespace

std::span<const OpRecord> contrib_ops() {
  static constexpr OpRecord records[] = {
      {"FastGelu", 1, 1, "", fast_gelu},
      {"BiasGelu", 1, 1, "", bias_gelu},
      {"Gelu", 1, 1, "", exact_gelu},
      {"QuickGelu", 1, 1, "alpha", quick_gelu},
      {"SkipLayerNormalization", 1, 1, "epsilon", skip_layer_norm},
      {"SkipSimplifiedLayerNormalization", 1, 1, "epsilon", skip_rms_norm},
  };
  return records;
}

}  // namespace lathe::onnx
