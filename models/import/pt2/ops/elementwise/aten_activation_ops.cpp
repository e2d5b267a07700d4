#include <fmt/core.h>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

Results relu_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (is_float(x.dtype())) return {relu(x)};
  return {widened([](const Tensor& a) { return maximum(a, 0); }, x)};
}
Results limited(const OpCall& call, double low, double high) {
  const Tensor x = call.tensor(0);
  if (is_float(x.dtype())) return {importing::limited(x, low, high)};
  return {widened([&](const Tensor& a) { return clamp(a, low, high); }, x)};
}
Results relu6(const OpCall& call) { return limited(call, 0, 6); }
Results sigmoid_op(const OpCall& call) { return {sigmoid(float_operand(call))}; }
Results silu_op(const OpCall& call) { return {silu(call.tensor(0))}; }
Results mish_op(const OpCall& call) { return {importing::mish(call.tensor(0))}; }
Results hard_swish_op(const OpCall& call) { return {importing::hard_swish(call.tensor(0))}; }
Results hard_sigmoid_op(const OpCall& call) { return {importing::hard_sigmoid(call.tensor(0), 1.0 / 6, 0.5)}; }

Results gelu_op(const OpCall& call) {
  const std::string approximation = call.text("approximate", "none");
  if (approximation != "none" && approximation != "tanh")
    call.fail(fmt::format("the argument approximate is '{}', not none or tanh", approximation), "import_attribute");
  return {gelu(call.tensor(0), approximation == "tanh")};
}

Results hard_tanh(const OpCall& call) {
  return limited(call, real_argument(call, "min_val", -1), real_argument(call, "max_val", 1));
}

Results leaky_relu_op(const OpCall& call) {
  return {importing::leaky_relu(call.tensor(0), real_argument(call, "negative_slope", 0.01))};
}

/// alpha * scale (e^(input_scale * x) - 1) up to 0, and scale * x above.
Results elu_op(const OpCall& call) {
  const double alpha = real_argument(call, "alpha", 1), scale = real_argument(call, "scale", 1),
               input_scale = real_argument(call, "input_scale", 1);
  const Tensor x = call.tensor(0);
  const Tensor is_above = x > 0, below = (where(is_above, 0, x) * input_scale).expm1() * (alpha * scale);
  return {where(is_above, scale == 1 ? x : x * scale, below)};
}
Results celu_op(const OpCall& call) { return {importing::celu(call.tensor(0), real_argument(call, "alpha", 1))}; }
Results selu_op(const OpCall& call) {
  return {importing::selu(call.tensor(0), 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)};
}

/// Linear above the threshold.
Results softplus_op(const OpCall& call) {
  const double beta = real_argument(call, "beta", 1), threshold = real_argument(call, "threshold", 20);
  const Tensor x = call.tensor(0), scaled = beta == 1 ? x : x * beta;
  const Tensor is_linear = scaled > threshold, curve = softplus(where(is_linear, threshold, scaled));
  return {where(is_linear, x, beta == 1 ? curve : curve / beta)};
}

/// NaN stays.
Results threshold_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double least = real_argument(call, "threshold", 0), value = real_argument(call, "value", 0);
  return {where(x <= least, call.graph().constant(value, x.dtype()), x)};
}

/// 0 within -lambd .. lambd; other elements stay, or move towards 0 by lambd. NaN stays.
Results hard_shrink(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double limit = real_argument(call, "lambd", 0.5);
  return {where((x >= -limit) & (x <= limit), 0, x)};
}
Results soft_shrink(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double limit = real_argument(call, "lambd", 0.5);
  return {where(x > limit, x - limit, where(x < -limit, x + limit, where(isnan(x), x, 0)))};
}

/// A slope for each channel, in dim 1, or one for all.
Results prelu(const OpCall& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1);
  const Tensor slope = weight.shape().numel().is(1) ? weight.reshape({}) : along_axis(weight, 1, x.rank());
  return {where(x > 0, x, x * slope)};
}

/// The first half along a dim, gated by the second one.
Results glu(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::vector<Tensor> halves = x.chunk(2, axis_argument(call, x.rank(), std::int64_t{-1}));
  return {halves[0] * sigmoid(halves[1])};
}

/// A tensor without dims is one element.
Tensor along(const Tensor& x, int axis, Tensor (*function)(const Tensor&, int)) {
  return x.rank() == 0 ? function(x.unsqueeze(0), 0).squeeze(0) : function(x, axis);
}
Results soft_max(const OpCall& call, Tensor (*function)(const Tensor&, int)) {
  const Tensor x = call.tensor(0);
  const DType dtype = dtype_argument(call, float_of(x.dtype()));
  return {along(x.to(dtype), axis_argument(call, x.rank()), function)};
}
/// half_to_float is set for f16 on GPUs: the result is f32.
Results soft_max_of_half(const OpCall& call, Tensor (*function)(const Tensor&, int)) {
  const Tensor x = call.tensor(0);
  return {along(call.flag("half_to_float", false) ? x.to(f32) : x, axis_argument(call, x.rank()), function)};
}
Tensor softmax_along(const Tensor& x, int axis) { return softmax(x, axis); }
Tensor log_softmax_along(const Tensor& x, int axis) { return log_softmax(x, axis); }
Results softmax_op(const OpCall& call) { return soft_max(call, softmax_along); }
Results log_softmax_op(const OpCall& call) { return soft_max(call, log_softmax_along); }
Results core_softmax(const OpCall& call) { return soft_max_of_half(call, softmax_along); }
Results core_log_softmax(const OpCall& call) { return soft_max_of_half(call, log_softmax_along); }

/// In training mode, draws from the graph's random state, so that a training step has dropout.
Results dropout_op(const OpCall& call) {
  const double p = real_argument(call, "p", 0.5);
  const bool is_training = call.flag("train", true);
  if (call.reads(1)) call.fail("the mask of dropout is not supported");
  if (!is_training || p == 0) return {call.operand(0)};
  return {dropout(call.tensor(0), p)};
}

/// Dropouts of whole channels, and those that keep the mean and the variance, have no effect in evaluation mode.
Results evaluated_dropout(const OpCall& call) {
  const double p = real_argument(call, "p", 0.5);
  if (call.flag("train", true) && p > 0)
    call.fail("this dropout is not supported in training mode", "import_unsupported",
              "export the model after model.eval()");
  return {call.operand(0)};
}

/// A slope for negative elements: drawn in training mode, else the mean of its limits.
Results random_relu(const OpCall& call) {
  const double lower = real_argument(call, "lower", 1.0 / 8), upper = real_argument(call, "upper", 1.0 / 3);
  if (call.flag("training", false) && lower != upper)
    call.fail("rrelu is not supported in training mode", "import_unsupported", "export the model after model.eval()");
  return {importing::leaky_relu(call.tensor(0), (lower + upper) / 2)};
}

}  // namespace

std::span<const OpRecord> aten_activation_ops() {
  static constexpr OpRecord records[] = {
      aten("relu", "self", "", relu_op),
      aten("relu6", "self", "", relu6),
      aten("sigmoid", "self", "", sigmoid_op),
      aten("silu", "self", "", silu_op),
      aten("mish", "self", "", mish_op),
      aten("gelu", "self", "approximate", gelu_op),
      aten("hardswish", "self", "", hard_swish_op),
      aten("hardsigmoid", "self", "", hard_sigmoid_op),
      aten("hardtanh", "self", "min_val max_val", hard_tanh),
      aten("leaky_relu", "self", "negative_slope", leaky_relu_op),
      aten("elu", "self", "alpha scale input_scale", elu_op),
      aten("celu", "self", "alpha", celu_op),
      aten("selu", "self", "", selu_op),
      aten("softplus", "self", "beta threshold", softplus_op),
      aten("threshold", "self", "threshold value", threshold_op),
      aten("hardshrink", "self", "lambd", hard_shrink),
      aten("softshrink", "self", "lambd", soft_shrink),
      aten("prelu", "self weight", "", prelu),
      aten("_prelu_kernel", "self weight", "", prelu),
      aten("glu", "self", "dim", glu),
      aten("softmax.int", "self", "dim dtype", softmax_op),
      aten("log_softmax.int", "self", "dim dtype", log_softmax_op),
      aten("_softmax", "self", "dim half_to_float", core_softmax),
      aten("_log_softmax", "self", "dim half_to_float", core_log_softmax),
      aten("dropout", "input", "p train", dropout_op),
      aten("feature_dropout", "input", "p train", evaluated_dropout),
      aten("alpha_dropout", "input", "p train", evaluated_dropout),
      aten("feature_alpha_dropout", "input", "p train", evaluated_dropout),
      aten("rrelu", "self", "lower upper training", random_relu),
      aten("native_dropout", "input", "p train", dropout_op),
  };
  return records;
}

}  // namespace lathe::pt2
