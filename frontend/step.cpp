#include "frontend/step.h"

namespace lathe {

ir::Graph training_step(Graph& g, const Tensor& loss, const Optimizer& optimizer, const TrainingOptions& options,
                        Where at) {
  {
    const CallSite line(g.builder(), at);
    add_training_step(loss.value(), optimizer, options);
  }
  return g.finish();
}

}  // namespace lathe
