#include "runtime/train/loss_history.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe {

namespace {

constexpr const char *training_steps = "history.step", *training_losses = "history.loss",
                     *evaluation_steps = "history.validation_step", *evaluation_losses = "history.validation_loss";

void add(const std::vector<LossPoint>& curve, const char* steps, const char* losses, Tensors& tensors) {
  const auto n = static_cast<std::int64_t>(curve.size());
  HostTensor step(i64, {n}), loss(f64, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    step.set_int(i, curve[i].step);
    loss.set(i, curve[i].loss);
  }
  tensors.emplace(steps, std::move(step));
  tensors.emplace(losses, std::move(loss));
}

std::vector<LossPoint> read(const HostTensor& step, const HostTensor& loss) {
  std::vector<LossPoint> curve;
  for (std::int64_t i = 0; i < step.numel(); ++i) curve.push_back({step.get_int(i), loss.get(i)});
  return curve;
}

std::vector<LossPoint> read(const Checkpoint& checkpoint, const char* steps, const char* losses) {
  const HostTensor step = checkpoint.tensors.tensor(steps), loss = checkpoint.tensors.tensor(losses);
  if (step.dtype() != i64 || loss.dtype() != f64 || step.rank() != 1 || step.shape() != loss.shape())
    throw UserError(fmt::format("checkpoint {}: {} and {} are {}{} and {}{}", checkpoint.folder.string(), steps,
                                losses, name(step.dtype()), shape_to_string(step.shape()), name(loss.dtype()),
                                shape_to_string(loss.shape())),
                    "checkpoint_invalid", "they must be i64[n] and f64[n]");
  return read(step, loss);
}

}  // namespace

Tensors LossHistory::tensors() const {
  Tensors result;
  add(training, training_steps, training_losses, result);
  add(evaluation, evaluation_steps, evaluation_losses, result);
  return result;
}

LossHistory LossHistory::of(const Tensors& tensors) {
  return {.training = read(tensors.at(training_steps), tensors.at(training_losses)),
          .evaluation = read(tensors.at(evaluation_steps), tensors.at(evaluation_losses))};
}

LossHistory LossHistory::of(const Checkpoint& checkpoint) {
  return {.training = read(checkpoint, training_steps, training_losses),
          .evaluation = read(checkpoint, evaluation_steps, evaluation_losses)};
}

}  // namespace lathe
