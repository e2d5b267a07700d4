#include "frontend/train/optimizers/schedule_free.h"

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

namespace {

/// Advances the sum of the weights, and returns the share of this step in it: an f64 scalar.
Tensor share_of_step(const ScheduleFreeAdamW& options, ParameterUpdate& first) {
  const Tensor largest_rate = first.group_state("largest_rate"), weight_sum = first.group_state("weight_sum");
  const Tensor largest = maximum(largest_rate, first.exact_rate());
  const Tensor weight = pow(first.step(), options.step_power) * pow(largest, options.rate_power);
  const Tensor sum = weight_sum + weight;
  first.set_state(largest_rate, largest);
  first.set_state(weight_sum, sum);
  return where(sum > 0.0, weight / sum, 0.0);
}

void add_step(const ScheduleFreeAdamW& options, ParameterUpdate& update, const Tensor& share) {
  const Tensor y = update.parameter(), g = update.gradient(), v = update.state("v"), stored_z = update.state("z");
  const Tensor z = where(update.step() == 1.0, y, stored_z);
  const Tensor v1 = v * options.beta2 + g * g * (1 - options.beta2);
  update.set_state(v, v1);
  const Tensor correction = update.rounded(detail::bias_correction(update, options.beta2));
  Tensor direction = g / (sqrt(v1 / correction) + options.eps);
  if (update.decays() && options.weight_decay != 0) direction = direction + y * options.weight_decay;
  update.set_state(stored_z, z - direction * update.rate());
  const Tensor step_of_y = update.rounded(update.exact_rate() * (options.beta1 * (1.0 - share) - 1.0));
  update.set_parameter(y + (z - y) * update.rounded(share) + direction * step_of_y);
}

}  // namespace

ScheduleFreeAdamW::operator Optimizer() const {
  const auto rule = [options = *this](std::span<ParameterUpdate> updates) {
    const Tensor share = share_of_step(options, updates.front());
    for (ParameterUpdate& update : updates) add_step(options, update, share);
  };
  using namespace detail;
  const Fault positive_beta1 = beta1 > 0 ? Fault() : Fault("beta1 is 0, and the average needs a positive one");
  return Optimizer::built_in("ScheduleFreeAdamW", lr, Optimizer::GroupRule(rule),
                             first_of({adam_fault(*this), positive_beta1, unless_positive("step_power", step_power),
                                       unless_positive("rate_power", rate_power)}));
}

Tensor schedule_free_average(const Tensor& y, const Tensor& z, double beta1, Where at) {
  const CallSite site(y.builder(at), at);
  return y + (z - y) * (1 - 1 / beta1);
}

}  // namespace lathe
