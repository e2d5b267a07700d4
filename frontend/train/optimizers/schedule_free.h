#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/optimizer.h"

namespace lathe {

/// Schedule-free AdamW (Defazio et al. 2024): replaces a decaying rate by an average of all iterates. The step trains
/// y, which is the parameter itself. The states are z, "optimizer.z.<parameter>", the second moment
/// "optimizer.v.<parameter>", and for the whole group the f64 scalars "optimizer.weight_sum" and
/// "optimizer.largest_rate". Evaluate and save the average x = y + (z - y) * (1 - 1 / beta1): schedule_free_average()
/// returns it.
struct ScheduleFreeAdamW {
  Schedule lr = 2.5e-3;  ///< constant, or with a warm-up; do not let it decay
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double step_power = 0;  ///< weights of the average are step^step_power * (largest rate)^rate_power
  double rate_power = 2;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// Returns the average x from the parameter y and its state z; `beta1` is that of the optimizer.
Tensor schedule_free_average(const Tensor& y, const Tensor& z, double beta1, Where at = Where::current());

/// Returns the names of the parameters that a step trains by ScheduleFreeAdamW, in the step's order. `optimizer` is
/// the prefix of the step's states (TrainingOptions::name).
std::vector<std::string> schedule_free_parameters(const ir::Graph& step, std::string_view optimizer = "optimizer");

/// Returns `forward` with the average of each parameter in place of the parameter, for evaluation on the step's
/// store. The graph reads the states z, and "optimizer.step", because the first step sets z. A parameter that is not
/// in `forward` is skipped.
ir::Graph schedule_free_evaluation(const ir::Graph& forward, std::span<const std::string> parameters, double beta1,
                                   std::string_view optimizer = "optimizer");

}  // namespace lathe
