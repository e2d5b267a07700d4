#include <fmt/core.h>

#include <numeric>

#include "frontend/ops/losses.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// The argument `reduction` is a number of PyTorch's enum.
Reduction reduction_of(const OpCall& call) {
  const std::int64_t number = call.integer("reduction", 1);
  if (number < 0 || number > 2) call.fail(fmt::format("the argument reduction is {}", number), "import_attribute");
  return number == 0 ? Reduction::none : number == 1 ? Reduction::mean : Reduction::sum;
}

Tensor reduced_by(Reduction reduction, const Tensor& losses) {
  return reduction == Reduction::none ? losses : reduction == Reduction::mean ? losses.mean() : losses.sum();
}

/// Returns the tensor with its classes, dim 1, as the last dim. A vector is one element.
Tensor with_last_classes(const Tensor& x) {
  if (x.rank() < 3) return x;
  Ints order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return x.permute(order);
}

Results cross_entropy_op(const OpCall& call) {
  if (call.has(2)) call.fail("weights of classes are not supported");
  const double smoothing = real_argument(call, "label_smoothing", 0);
  const std::int64_t ignored = call.integer("ignore_index", -100);
  const Tensor logits = with_last_classes(call.tensor(0)), targets = call.tensor(1);
  if (reduction_of(call) != Reduction::mean) call.fail("the reductions none and sum are not supported");
  if (is_float(targets.dtype())) return {cross_entropy(logits, with_last_classes(targets), {}, smoothing)};
  return {cross_entropy(logits, targets, ignored, smoothing)};
}

/// -x[n, target, ..] for each target, and the number of targets that count.
Results negative_log_likelihood(const OpCall& call) {
  if (call.has(2)) call.fail("weights of classes are not supported");
  const std::int64_t ignored = call.integer("ignore_index", -100);
  const Tensor x = with_last_classes(call.tensor(0)), targets = call.tensor(1);
  const Tensor counts = targets != ignored, zero = call.graph().constant(0, x.dtype());
  const Tensor chosen = take_along(x, where(counts, targets, 0).unsqueeze(-1), -1).squeeze(-1);
  const Tensor losses = where(counts, -chosen, zero), count = counts.to(x.dtype()).sum();
  switch (reduction_of(call)) {
    case Reduction::none: return {losses, count};
    case Reduction::sum: return {losses.sum(), count};
    case Reduction::mean: break;
  }
  return {losses.sum() / count, count};
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

Results binary_cross_entropy(const OpCall& call) {
  if (call.has(2)) call.fail("weights of elements are not supported");
  const std::optional<Tensor> positive = call.has(3) ? std::optional(call.tensor(3)) : std::nullopt;
  return {binary_cross_entropy_with_logits(call.tensor(0), call.tensor(1), positive, reduction_of(call))};
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
      aten("binary_cross_entropy_with_logits", "self target weight pos_weight", "reduction", binary_cross_entropy),
  };
  return records;
}

}  // namespace lathe::pt2
