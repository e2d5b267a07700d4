#include "frontend/train/optimizers/sgd.h"

#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

SGD::operator Optimizer() const {
  const auto rule = [sgd = *this](ParameterUpdate& update) {
    const Tensor p = update.parameter();
    Tensor g = update.gradient();
    if (update.decays() && sgd.weight_decay != 0) g = g + p * sgd.weight_decay;
    if (sgd.momentum != 0) {
      const Tensor buffer = update.state("momentum");
      const Tensor moved = buffer * sgd.momentum + g;
      update.set_state(buffer, moved);
      g = sgd.nesterov ? g + moved * sgd.momentum : moved;
    }
    update.set_parameter(p - g * update.rate());
  };
  return Optimizer::built_in("SGD", lr, Optimizer::Rule(rule),
                             detail::first_of({detail::unless_positive("momentum", momentum),
                                               detail::unless_positive("weight_decay", weight_decay)}));
}

}  // namespace lathe
