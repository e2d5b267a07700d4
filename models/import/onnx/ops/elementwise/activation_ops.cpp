#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/elementwise_functions.h"

namespace lathe::onnx {

namespace {

Tensor zero_of(const Tensor& x) { return x.graph().constant(0, x.dtype()); }

/// max(x, 0), also of integers.
Results relu_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (is_float(x.dtype())) return {relu(x)};
  return {widened([](const Tensor& a) { return maximum(a, zero_of(a)); }, x)};
}

Results sigmoid_op(const OpCall& call) { return {sigmoid(call.tensor(0))}; }
Results softplus_op(const OpCall& call) { return {softplus(call.tensor(0))}; }

Results leaky_relu_op(const OpCall& call) {
  return {importing::leaky_relu(call.tensor(0), call.real("alpha", 0.01))};
}

Results prelu(const OpCall& call) {
  const auto op = [](const Tensor& x, const Tensor& slope) { return where(x > 0, x, x * slope); };
  return {widened(op, call.tensor(0), call.tensor(1))};
}

Results elu_op(const OpCall& call) { return {importing::elu(call.tensor(0), call.real("alpha", 1))}; }
Results celu_op(const OpCall& call) { return {importing::celu(call.tensor(0), call.real("alpha", 1))}; }
Results selu_op(const OpCall& call) {
  return {importing::selu(call.tensor(0), call.real("alpha", 1.67326319217681884765625),
                          call.real("gamma", 1.05070102214813232421875))};
}

Results hard_sigmoid_op(const OpCall& call) {
  return {importing::hard_sigmoid(call.tensor(0), call.real("alpha", 0.2), call.real("beta", 0.5))};
}
Results hard_swish_op(const OpCall& call) { return {importing::hard_swish(call.tensor(0))}; }
Results softsign_op(const OpCall& call) { return {importing::softsign(call.tensor(0))}; }
Results mish_op(const OpCall& call) { return {importing::mish(call.tensor(0))}; }

Results thresholded_relu(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {where(x > call.real("alpha", 1), x, zero_of(x))};
}

Results shrink(const OpCall& call) {
  const double lambda = call.real("lambd", 0.5), bias = call.real("bias", 0);
  const auto op = [&](const Tensor& x) {
    const Tensor wide = is_float(x.dtype()) ? x : x.to(f64), zero = zero_of(wide);
    return where(wide < -lambda, wide + bias, where(wide > lambda, wide - bias, zero)).to(x.dtype());
  };
  return {op(call.tensor(0))};
}

Results gelu_op(const OpCall& call) {
  const std::string approximation = call.text("approximate", "none");
  if (approximation != "none" && approximation != "tanh")
    call.fail("the attribute approximate is '" + approximation + "', not none or tanh", "import_attribute");
  return {gelu(call.tensor(0), approximation == "tanh")};
}

Results swish(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double alpha = call.real("alpha", 1);
  return {alpha == 1 ? silu(x) : x * sigmoid(x * alpha)};
}

Tensor softmax_of(const Tensor& x, int axis) { return softmax(x, axis); }
Tensor log_softmax_of(const Tensor& x, int axis) { return log_softmax(x, axis); }

/// 1 at the first maximum along an axis, 0 elsewhere.
Tensor hardmax_of(const Tensor& x, int axis) {
  const Tensor positions = x.graph().arange(x.size(axis), i64);
  return (argmax(x, axis).unsqueeze(axis) == along_axis(positions, axis, x.rank())).to(x.dtype());
}

template <Tensor (*op)(const Tensor&, int)>
Results along_one_axis(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {op(x, call.axis(call.integer("axis", -1), x.rank()))};
}

/// Before opset 13, the dims from the axis on are one.
template <Tensor (*op)(const Tensor&, int)>
Results along_last_axes(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 1), x.rank());
  if (axis == x.rank() - 1) return {op(x, axis)};
  const Tensor rows = x.reshape({product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())});
  return {op(rows, 1).reshape(x.shape())};
}

}  // namespace

std::span<const OpRecord> activation_ops() {
  static constexpr OpRecord records[] = {
      {"Relu", 6, latest, "", relu_op},
      {"LeakyRelu", 6, latest, "alpha", leaky_relu_op},
      {"PRelu", 7, latest, "", prelu},
      {"Elu", 6, latest, "alpha", elu_op},
      {"Celu", 12, latest, "alpha", celu_op},
      {"Selu", 6, latest, "alpha gamma", selu_op},
      {"Sigmoid", 6, latest, "", sigmoid_op},
      {"HardSigmoid", 6, latest, "alpha beta", hard_sigmoid_op},
      {"HardSwish", 14, latest, "", hard_swish_op},
      {"Softplus", 1, latest, "", softplus_op},
      {"Softsign", 1, latest, "", softsign_op},
      {"Mish", 18, latest, "", mish_op},
      {"ThresholdedRelu", 10, latest, "alpha", thresholded_relu},
      {"Shrink", 9, latest, "bias lambd", shrink},
      {"Gelu", 20, latest, "approximate", gelu_op},
      {"Swish", 24, latest, "alpha", swish},
      {"Softmax", 1, 12, "axis", along_last_axes<softmax_of>},
      {"Softmax", 13, latest, "axis", along_one_axis<softmax_of>},
      {"LogSoftmax", 1, 12, "axis", along_last_axes<log_softmax_of>},
      {"LogSoftmax", 13, latest, "axis", along_one_axis<log_softmax_of>},
      {"Hardmax", 1, 12, "axis", along_last_axes<hardmax_of>},
      {"Hardmax", 13, latest, "axis", along_one_axis<hardmax_of>},
  };
  return records;
}

}  // namespace lathe::onnx
