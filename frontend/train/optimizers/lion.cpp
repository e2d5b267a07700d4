#include "frontend/train/optimizers/lion.h"

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

Lion::operator Optimizer() const {
  const auto rule = [lion = *this](ParameterUpdate& update) {
    const Tensor g = update.gradient(), m = update.state("m");
    const Tensor direction = sign(m * lion.beta1 + g * (1 - lion.beta1));
    update.set_state(m, m * lion.beta2 + g * (1 - lion.beta2));
    update.set_parameter(detail::decayed(update, lion.weight_decay) - direction * update.rate());
  };
  return Optimizer::built_in(
      "Lion", lr, Optimizer::Rule(rule),
      detail::first_of({detail::unless_share("beta1", beta1), detail::unless_share("beta2", beta2),
                        detail::unless_positive("weight_decay", weight_decay)}));
}

}  // namespace lathe
