#include <fmt/core.h>

#include <numbers>
#include <numeric>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/losses/loss_reduction.h"

namespace lathe::pt2 {

namespace {

/// Returns the tensor with its classes, dim 1, as the last dim. A vector is one element.
Tensor with_last_classes(const Tensor& x) {
  if (x.rank() < 3) return x;
  Ints order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return x.permute(order);
}

/// The losses of targets that are numbers of classes, and the weights of the targets that the mean divides by.
struct ClassLosses {
  Tensor losses, weights;
};

/// -logarithms[.., target] * weight[target], and 0 where the target is ignored. An empty weight is 1.
ClassLosses losses_of_classes(const Tensor& logarithms, const Tensor& targets, const Tensor& weight,
                              std::int64_t ignored) {
  const Tensor counts = targets != ignored, at = where(counts, targets, 0);
  const Tensor chosen = take_along(logarithms, at.unsqueeze(-1), -1).squeeze(-1);
  const Tensor own = weight.is_empty() ? counts.to(logarithms.dtype()) : where(counts, gather(weight, at), 0);
  return {where(counts, -chosen * own, 0), own};
}

Tensor reduced(const OpCall& call, const ClassLosses& classes) {
  const Reduction reduction = reduction_of(call);
  if (reduction == Reduction::mean) return classes.losses.sum() / classes.weights.sum();
  return reduced_by(reduction, classes.losses);
}

/// The cross entropy of any reduction, with weights of classes. With smoothing, the mean of the losses of all classes
/// has a part in the loss of each target.
Tensor any_cross_entropy(const OpCall& call, const Tensor& logits, const Tensor& targets, double smoothing,
                         std::int64_t ignored) {
  const Tensor weight = optional_tensor(call, 2), logarithms = log_softmax(logits, -1);
  const Tensor weighted = weight.is_empty() ? logarithms : logarithms * weight;
  if (is_float(targets.dtype())) {
    const Tensor target = with_last_classes(targets) * (1 - smoothing);
    const Tensor uniform = call.graph().dim_value(logits.size(-1).unnamed()).to(logits.dtype());
    return reduced_by(reduction_of(call), -(weighted * (target + smoothing / uniform)).sum(-1));
  }
  ClassLosses classes = losses_of_classes(logarithms, targets, weight, ignored);
  if (smoothing > 0)
    classes.losses = classes.losses * (1 - smoothing) - where(targets != ignored, weighted.mean(-1) * smoothing, 0);
  return reduced(call, classes);
}

Results cross_entropy_op(const OpCall& call) {
  const double smoothing = real_argument(call, "label_smoothing", 0);
  const std::int64_t ignored = call.integer("ignore_index", -100);
  const Tensor logits = with_last_classes(call.tensor(0)), targets = call.tensor(1);
  if (call.has(2) || reduction_of(call) != Reduction::mean)
    return {any_cross_entropy(call, logits, targets, smoothing, ignored)};
  if (is_float(targets.dtype())) return {cross_entropy(logits, with_last_classes(targets), {}, smoothing)};
  return {cross_entropy(logits, targets, ignored, smoothing)};
}

/// -x[n, target, ..] for each target, and the weight of the targets that count.
Results negative_log_likelihood(const OpCall& call) {
  const std::int64_t ignored = call.integer("ignore_index", -100);
  const ClassLosses classes =
      losses_of_classes(with_last_classes(call.tensor(0)), call.tensor(1), optional_tensor(call, 2), ignored);
  return {reduced(call, classes), classes.weights.sum()};
}

Results squared_error(const OpCall& call) {
  const Tensor difference = call.tensor(0) - call.tensor(1);
  return {reduced_by(reduction_of(call), difference * difference)};
}
Results absolute_error(const OpCall& call) {
  return {reduced_by(reduction_of(call), abs(call.tensor(0) - call.tensor(1)))};
}

/// Quadratic below beta, linear above.
Results smooth_error(const OpCall& call) {
  const double beta = real_argument(call, "beta", 1);
  if (beta == 0) return absolute_error(call);
  const Tensor difference = abs(call.tensor(0) - call.tensor(1));
  const Tensor near = difference * difference * (0.5 / beta), far = difference - 0.5 * beta;
  return {reduced_by(reduction_of(call), where(difference < beta, near, far))};
}

/// Quadratic up to delta, linear above.
Results huber_error(const OpCall& call) {
  const double delta = real_argument(call, "delta", 1);
  const Tensor difference = abs(call.tensor(0) - call.tensor(1));
  const Tensor near = difference * difference * 0.5, far = (difference - 0.5 * delta) * delta;
  return reduced_loss(call, where(difference < delta, near, far));
}

/// The cross entropy of probabilities, whose logarithms are at least -100. As in PyTorch, the gradient divides by at
/// least 1e-12, so that probabilities of 0 and 1 have one.
Results cross_entropy_of_probabilities(const OpCall& call) {
  constexpr double least = 1e-12;
  const DType dtype = at_least_f32(call.dtype(0));
  const Tensor x = call.tensor(0).to(dtype), target = call.tensor(1).to(dtype);
  const auto losses_of = [&](const Tensor& log_x, const Tensor& log_rest) {
    return (target - 1.0) * log_rest - target * log_x;
  };
  const auto limited_log = [](const Tensor& a) { return detach(maximum(log(a), -100)); };
  const Tensor log_x = limited_log(x), log_rest = limited_log(1.0 - x);
  const Tensor is_inside = x * (1.0 - x) > least, safe = where(is_inside, x, 0.5), known = detach(target);
  const Tensor outside = (x * 0.5 - known) * x / least + (target - known) * (log_rest - log_x);
  const Tensor path = where(is_inside, losses_of(log(safe), log(1.0 - safe)), outside);
  const Tensor losses = straight_through(losses_of(log_x, log_rest), path).to(call.dtype(0));
  return reduced_loss(call, call.has(2) ? losses * call.tensor(2) : losses);
}

/// target * (log(target) - x) for logarithms x. The mean is that of all elements.
Results kl_divergence_op(const OpCall& call) {
  const Tensor x = call.tensor(0), target = call.tensor(1);
  if (call.flag("log_target", false)) return reduced_loss(call, exp(target) * (target - x));
  return reduced_loss(call, importing::xlogy(target, target) - target * x);
}

/// max(0, margin - target * (a - b))
Results margin_ranking(const OpCall& call) {
  const double margin = real_argument(call, "margin", 0);
  return reduced_loss(call, relu(-(call.tensor(2).to(call.dtype(0)) * (call.tensor(0) - call.tensor(1))) + margin));
}

Results soft_margin(const OpCall& call) {
  return reduced_loss(call, softplus(-(call.tensor(1).to(call.dtype(0)) * call.tensor(0))));
}

/// The element for the target 1, and max(0, margin - element) for -1.
Results hinge_embedding(const OpCall& call) {
  const Tensor x = call.tensor(0), target = call.tensor(1);
  const Tensor apart = relu(-x + real_argument(call, "margin", 1));
  return reduced_loss(call, where(target != 1, apart, 0) + where(target != -1, x, 0));
}

/// With `full`, adds Stirling's approximation of log(target!) for targets above 1.
Results poisson_likelihood(const OpCall& call) {
  const Tensor x = call.tensor(0), target = call.tensor(1).to(x.dtype());
  Tensor losses =
      call.flag("log_input", true) ? exp(x) - target * x : x - target * log(x + real_argument(call, "eps", 1e-8));
  call.ignore({"eps"});
  if (call.flag("full", false)) {
    const Tensor safe = maximum(target, 1);
    const Tensor sum = safe * log(safe) - safe + log(safe * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(target > 1, sum, 0);
  }
  return reduced_loss(call, losses);
}

Results binary_cross_entropy(const OpCall& call) {
  const std::optional<Tensor> positive = call.has(3) ? std::optional(call.tensor(3)) : std::nullopt;
  const Reduction reduction = reduction_of(call);
  const Tensor losses = binary_cross_entropy_with_logits(call.tensor(0), call.tensor(1), positive,
                                                         call.has(2) ? Reduction::none : reduction);
  return {call.has(2) ? reduced_by(reduction, losses * call.tensor(2)) : losses};
}

}  // namespace

std::span<const OpRecord> aten_loss_ops() {
  static constexpr OpRecord records[] = {
      aten("cross_entropy_loss", "self target weight", "reduction ignore_index label_smoothing", cross_entropy_op),
      aten("nll_loss_forward", "self target weight", "reduction ignore_index", negative_log_likelihood),
      aten("nll_loss2d_forward", "self target weight", "reduction ignore_index", negative_log_likelihood),
      aten("nll_loss_nd", "self target weight", "reduction ignore_index", negative_log_likelihood),
      aten("nll_loss", "self target weight", "reduction ignore_index", negative_log_likelihood),
      aten("mse_loss", "self target", "reduction", squared_error),
      aten("l1_loss", "self target", "reduction", absolute_error),
      aten("smooth_l1_loss", "self target", "reduction beta", smooth_error),
      aten("huber_loss", "self target", "reduction delta", huber_error),
      aten("binary_cross_entropy", "self target weight", "reduction", cross_entropy_of_probabilities),
      aten("kl_div", "self target", "reduction log_target", kl_divergence_op),
      aten("margin_ranking_loss", "input1 input2 target", "margin reduction", margin_ranking),
      aten("soft_margin_loss", "self target", "reduction", soft_margin),
      aten("hinge_embedding_loss", "self target", "margin reduction", hinge_embedding),
      aten("poisson_nll_loss", "input target", "log_input full eps reduction", poisson_likelihood),
      aten("binary_cross_entropy_with_logits", "self target weight pos_weight", "reduction", binary_cross_entropy),
  };
  return records;
}

}  // namespace lathe::pt2
