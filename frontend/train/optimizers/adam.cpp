#include "frontend/train/optimizers/adam.h"

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/option_faults.h"
#include "ir/ops/functional/functional.h"

namespace lathe {

namespace detail {

Tensor bias_correction(const ParameterUpdate& update, double beta) {
  return 1.0 - pow(Tensor(ir::constant(update.step().builder(), beta, f64)), update.step());
}

Tensor decayed(const ParameterUpdate& update, double weight_decay) {
  if (!update.decays() || weight_decay == 0) return update.parameter();
  return update.parameter() * update.rounded(1.0 - update.exact_rate() * weight_decay);
}

}  // namespace detail

namespace {

/// Adam's step from `start`, the parameter's value after AdamW's decay.
template <class AnyAdam>
void add_adam_step(const AnyAdam& adam, ParameterUpdate& update, const Tensor& start, const Tensor& g) {
  const Tensor m = update.state("m"), v = update.state("v");
  const Tensor m1 = m * adam.beta1 + g * (1 - adam.beta1);
  const Tensor v1 = v * adam.beta2 + g * (1 - adam.beta2) * g;
  update.set_state(m, m1);
  update.set_state(v, v1);
  const Tensor root_correction = update.rounded(sqrt(detail::bias_correction(update, adam.beta2)));
  const Tensor step_size = update.rounded(update.exact_rate() / detail::bias_correction(update, adam.beta1));
  const Tensor denominator = sqrt(v1) / root_correction + adam.eps;
  update.set_parameter(start - m1 * step_size / denominator);
}

}  // namespace

Adam::operator Optimizer() const {
  const auto rule = [adam = *this](ParameterUpdate& update) {
    Tensor g = update.gradient();
    if (update.decays() && adam.weight_decay != 0) g = g + update.parameter() * adam.weight_decay;
    add_adam_step(adam, update, update.parameter(), g);
  };
  return Optimizer::built_in("Adam", lr, Optimizer::Rule(rule), detail::adam_fault(*this));
}

AdamW::operator Optimizer() const {
  const auto rule = [adam = *this](ParameterUpdate& update) {
    add_adam_step(adam, update, detail::decayed(update, adam.weight_decay), update.gradient());
  };
  return Optimizer::built_in("AdamW", lr, Optimizer::Rule(rule), detail::adam_fault(*this));
}

}  // namespace lathe
