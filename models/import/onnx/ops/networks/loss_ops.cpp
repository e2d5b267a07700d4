#include <fmt/core.h>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

/// The loss of each target: -log_probabilities[n, target, ..] times the weight of its class; 0 for ignored targets.
/// The mean is that over weights.
Tensor loss_of(const OpCall& call, const Tensor& log_probabilities, std::size_t weight_operand) {
  const Tensor given = call.tensor(1), zero = call.graph().constant(0, log_probabilities.dtype());
  const bool can_ignore = call.has("ignore_index");
  const Tensor is_ignored = can_ignore ? given == call.integer("ignore_index") : Tensor();
  const Tensor targets = can_ignore ? where(is_ignored, 0, given) : given;
  Tensor weights = call.graph().ones(targets.shape(), log_probabilities.dtype());
  if (call.has(weight_operand)) weights = gather(call.tensor(weight_operand), targets);
  if (can_ignore) weights = where(is_ignored, zero, weights);
  const Tensor chosen = take_along(log_probabilities, targets.unsqueeze(1), 1).squeeze(1);
  const Tensor losses = can_ignore ? where(is_ignored, zero, -chosen * weights) : -chosen * weights;
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return losses;
  if (reduction == "sum") return losses.sum();
  if (reduction == "mean") return losses.sum() / weights.sum();
  call.fail(fmt::format("the attribute reduction is '{}'", reduction), "import_attribute");
}

Results negative_log_likelihood(const OpCall& call) { return {loss_of(call, call.tensor(0), 2)}; }

Results softmax_cross_entropy(const OpCall& call) {
  const Tensor log_probabilities = log_softmax(call.tensor(0), 1);
  return {loss_of(call, log_probabilities, 2), log_probabilities};
}

}  // namespace

std::span<const OpRecord> loss_ops() {
  static constexpr OpRecord records[] = {
      {"NegativeLogLikelihoodLoss", 12, latest, "ignore_index reduction", negative_log_likelihood},
      {"SoftmaxCrossEntropyLoss", 12, latest, "ignore_index reduction", softmax_cross_entropy},
  };
  return records;
}

}  // namespace lathe::onnx
