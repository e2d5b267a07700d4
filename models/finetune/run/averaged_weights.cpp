#include "models/finetune/run/averaged_weights.h"

#include <algorithm>

#include "frontend/train/optimizers/schedule_free.h"
#include "ir/support/error.h"

namespace lathe {

namespace {

/// Returns y + (z - y) * (1 - 1 / beta1), the average of ScheduleFreeAdamW, in the dtype of y.
template <class T>
HostTensor average_of(const HostTensor& y, const HostTensor& z, double beta1) {
  HostTensor average(y.dtype(), y.shape());
  const T factor = static_cast<T>(1 - 1 / beta1);
  const std::span<const T> from = y.as<T>(), to = z.as<T>();
  const std::span<T> result = average.as<T>();
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = from[i] + (to[i] - from[i]) * factor;
  return average;
}

std::string state_z(const std::string& parameter) { return "optimizer.z." + parameter; }

}  // namespace

AveragedWeights::AveragedWeights(const OptimizerSettings& optimizer, const ir::Graph& step)
    : averaged_(optimizer.averages() ? schedule_free_parameters(step) : std::vector<std::string>()),
      beta1_(optimizer.average_beta1()) {}

ir::Graph AveragedWeights::evaluation(const ir::Graph& forward) const {
  return averaged_.empty() ? forward : schedule_free_evaluation(forward, averaged_, beta1_);
}

/// Returns the averages of the parameters that have one. Before the first update, an average is the parameter.
Tensors AveragedWeights::averages(const Trainer& trainer, std::span<const std::string> parameters) const {
  static const std::string updates = "optimizer.step";
  std::vector<std::string> own, states{updates};
  for (const std::string& name : parameters)
    if (std::ranges::count(averaged_, name) > 0) own.push_back(name);
  if (own.empty()) return {};
  for (const std::string& name : own) states.push_back(state_z(name));
  Tensors trained = trainer.wholes(own);
  const Tensors found = trainer.wholes(states);
  if (found.empty() || found.at(updates).get_int(0) == 0) return trained;
  for (auto& [name, y] : trained) {
    const HostTensor& z = found.at(state_z(name));
    LATHE_ASSERT(y.dtype() == z.dtype() && (y.dtype() == f32 || y.dtype() == f64));
    y = y.dtype() == f64 ? average_of<double>(y, z, beta1_) : average_of<float>(y, z, beta1_);
  }
  return trained;
}

Tensors AveragedWeights::wholes(const Trainer& trainer, std::span<const std::string> parameters) const {
  Tensors weights = averages(trainer, parameters);
  std::vector<std::string> others;
  for (const std::string& name : parameters)
    if (std::ranges::count(averaged_, name) == 0) others.push_back(name);
  weights.merge(trainer.wholes(others));
  return weights;
}

Parameters AveragedWeights::whole_parameters(const Trainer& trainer) const {
  Parameters weights = trainer.whole_parameters();
  if (averaged_.empty()) return weights;
  weights = weights.borrowed();
  weights.set(averages(trainer, averaged_));
  return weights;
}

}  // namespace lathe
