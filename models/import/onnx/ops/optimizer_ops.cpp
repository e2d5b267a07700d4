#include <fmt/core.h>

#include <cmath>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Steps of optimizers, from ai.onnx.preview.training. Operands: the rate, the number of the step, then the tensors,
/// their gradients, and the states of the optimizer, each in the order of the tensors. Results: the new tensors, then
/// the new states.
namespace lathe::onnx {

namespace {

/// One tensor with its gradient and states.
struct Optimized {
  Tensor x, gradient;
  std::vector<Tensor> states;
};

/// Returns the results of a step. `step` returns the new tensor and its new states.
template <class Step>
Results optimized(const OpCall& call, std::size_t states, const Step& step) {
  const std::size_t kinds = 2 + states;
  if (call.count() < 2 + kinds || (call.count() - 2) % kinds != 0)
    call.fail(fmt::format("{} operands for a rate, a step and {} for each tensor", call.count(), kinds),
              "import_operand");
  const std::size_t count = (call.count() - 2) / kinds;
  const Tensor rate = call.tensor(0).reshape({}), number = call.tensor(1).reshape({});
  Results results(count * (1 + states));
  for (std::size_t i = 0; i < count; ++i) {
    Optimized parts{call.tensor(2 + i), call.tensor(2 + count + i), {}};
    for (std::size_t s = 0; s < states; ++s) parts.states.push_back(call.tensor(2 + (2 + s) * count + i));
    // Adds the gradient of the regularization.
    parts.gradient = parts.x * call.real("norm_coefficient", 0) + parts.gradient;
    const std::vector<Tensor> next = step(parts, rate.to(parts.x.dtype()), number);
    for (std::size_t s = 0; s < next.size(); ++s) results[s * count + i] = next[s];
  }
  return results;
}

Results adagrad(const OpCall& call) {
  const double decay = call.real("decay_factor", 0), epsilon = call.real("epsilon", 1e-6);
  return optimized(call, 1, [&](const Optimized& at, const Tensor& rate, const Tensor& number) {
    const Tensor sum = at.states[0] + at.gradient * at.gradient;
    const Tensor decayed = rate / (number.to(rate.dtype()) * decay + 1.0);
    return std::vector{at.x - decayed * at.gradient / (sqrt(sum) + epsilon), sum};
  });
}

Results adam(const OpCall& call) {
  const double alpha = call.real("alpha", 0.9), beta = call.real("beta", 0.999), epsilon = call.real("epsilon", 1e-6),
               decay = call.real("norm_coefficient_post", 0);
  return optimized(call, 2, [&](const Optimized& at, const Tensor& rate, const Tensor& number) {
    const Tensor mean = at.states[0] * alpha + at.gradient * (1 - alpha);
    const Tensor square = at.states[1] * beta + at.gradient * at.gradient * (1 - beta);
    // The correction of the bias is 1 in step 0.
    const Tensor step = maximum(number, 1).to(rate.dtype());
    const Tensor corrected = rate * sqrt(1.0 - pow(beta, step)) / (1.0 - pow(alpha, step));
    const Tensor x = at.x - where(number > 0, corrected, rate) * (mean / (sqrt(square) + epsilon));
    return std::vector{x * (1 - decay), mean, square};
  });
}

Results momentum(const OpCall& call) {
  const double alpha = call.real("alpha"), beta = call.real("beta");
  const std::string mode = call.text("mode", "");
  if (mode != "standard" && mode != "nesterov")
    call.fail(fmt::format("the attribute mode is '{}', not standard or nesterov", mode), "import_attribute");
  return optimized(call, 1, [&](const Optimized& at, const Tensor& rate, const Tensor& number) {
    const Tensor factor = where(number > 0, call.graph().constant(beta, rate.dtype()), 1);
    const Tensor velocity = at.states[0] * alpha + factor * at.gradient;
    const Tensor direction = mode == "nesterov" ? at.gradient + velocity * alpha : velocity;
    return std::vector{at.x - rate * direction, velocity};
  });
}

}  // namespace

std::span<const OpRecord> optimizer_ops() {
  static constexpr OpRecord records[] = {
      {"Adagrad", 1, 1, "decay_factor epsilon norm_coefficient", adagrad},
      {"Adam", 1, 1, "alpha beta epsilon norm_coefficient norm_coefficient_post", adam},
      {"Momentum", 1, 1, "alpha beta mode norm_coefficient", momentum},
  };
  return records;
}

}  // namespace lathe::onnx
