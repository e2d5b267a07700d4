#include "frontend/ops/losses.h"

#include <fmt/core.h>

#include <limits>

#include "frontend/built.h"
#include "ir/ops/functional/functional_composites.h"

namespace lathe {

using detail::built;

namespace {

ir::Value reduced(const ir::Value& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return ir::mean(losses, {}, false);
    case Reduction::sum: return ir::sum(losses, {}, false);
    case Reduction::none: return losses;
  }
  throw InternalError("a reduction out of range");
}

/// Throws unless both have the same shape.
void require_equal_shapes(std::string_view op, const Where& at, const Tensor& a, const Tensor& b,
                          std::string_view hint) {
  if (a.shape(at) == b.shape(at)) return;
  throw UserError(Location(at), op,
                  fmt::format("the shapes {} and {} differ", a.shape(at).to_string(), b.shape(at).to_string()),
                  "loss_shape", std::string(hint));
}

/// Returns the mean over rows of -sum p log softmax(logits).
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& probabilities, double smoothing, const Where& at) {
  require_equal_shapes(
      "cross_entropy", at, logits, probabilities,
      "probabilities have the shape of the logits; numbers of classes are i64, without the last dim");
  if (!(smoothing >= 0 && smoothing <= 1))
    throw UserError(Location(at), "cross_entropy", fmt::format("label_smoothing is {}", smoothing),
                    "cross_entropy_smoothing", "it must be between 0 and 1");
  return built(
      "cross_entropy", at,
      [&](const ir::Value& x, const ir::Value& p) {
        const ir::Value logs = ir::log_softmax(x, -1);
        ir::Value rows = ir::neg(ir::sum(ir::mul(p, logs), {-1}, false));
        if (smoothing > 0)
          rows = ir::sub(ir::mul(rows, 1 - smoothing), ir::mul(ir::mean(logs, {-1}, false), smoothing));
        return reduced(rows, Reduction::mean);
      },
      logits, probabilities);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::optional<std::int64_t> ignore_index,
                     double label_smoothing, Where at) {
  detail::check_operands("cross_entropy", at, {&logits, &targets});
  if (is_float(targets.dtype(at)) && logits.rank(at) > 0 && targets.rank(at) == logits.rank(at)) {
    if (ignore_index)
      throw UserError(Location(at), "cross_entropy",
                      fmt::format("ignore_index={} is given, and targets that are probabilities", *ignore_index),
                      "cross_entropy_targets", "leave ignore_index out, or give the numbers of classes as i64");
    return soft_cross_entropy(logits, targets, label_smoothing, at);
  }
  return built(
      "cross_entropy", at, [&](auto& x, auto& y) { return ir::cross_entropy(x, y, ignore_index, label_smoothing); },
      logits, targets);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, Where at) {
  return built(
      "mse_loss", at,
      [&](const ir::Value& x, const ir::Value& y) {
        const ir::Value difference = ir::sub(x, y);
        if (difference.shape() != x.shape() && difference.shape() != y.shape())
          throw UserError(Location(at), "mse_loss",
                          fmt::format("each row of {} is compared with each row of {}: they broadcast to {}",
                                      x.shape().to_string(), y.shape().to_string(), difference.shape().to_string()),
                          "loss_shape", "give equal shapes, such as prediction.squeeze(-1), or expand() one of them");
        return reduced(ir::square(difference), reduction);
      },
      prediction, target);
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        const std::optional<Tensor>& positive_weight, Reduction reduction, Where at) {
  constexpr std::string_view op = "binary_cross_entropy_with_logits";
  detail::check_operands(op, at, {&logits, &targets});
  require_equal_shapes(op, at, logits, targets, "give one target in 0 .. 1 for each logit");
  // -log s = softplus(-x), -log(1 - s) = softplus(x) = softplus(-x) + x.
  if (!positive_weight)
    return built(
        op, at, [&](auto& x, auto& y) { return reduced(ir::sub(ir::softplus(x), ir::mul(x, y)), reduction); }, logits,
        targets);
  return built(
      op, at,
      [&](auto& x, auto& y, auto& w) {
        const ir::Value positive = ir::mul(ir::mul(w, y), ir::softplus(ir::neg(x)));
        return reduced(ir::add(positive, ir::mul(ir::sub(1.0, y), ir::softplus(x))), reduction);
      },
      logits, targets, *positive_weight);
}

Tensor kl_divergence(const Tensor& log_p, const Tensor& log_q, Reduction reduction, Where at) {
  detail::check_operands("kl_divergence", at, {&log_p, &log_q});
  require_equal_shapes("kl_divergence", at, log_p, log_q, "give the logarithms of both for the same classes");
  if (log_p.rank(at) < 1)
    throw UserError(Location(at), "kl_divergence", "a number has no classes", "loss_shape",
                    "the last dim is the classes");
  return built(
      "kl_divergence", at,
      [&](const ir::Value& p, const ir::Value& q) {
        const ir::Value none = ir::eq(p, -std::numeric_limits<double>::infinity());
        const ir::Value ratio = ir::where(none, 0.0, ir::sub(p, q));
        return reduced(ir::sum(ir::mul(ir::exp(p), ratio), {-1}, false), reduction);
      },
      log_p, log_q);
}

}  // namespace lathe
