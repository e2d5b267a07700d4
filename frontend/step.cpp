#include "frontend/step.h"

namespace lathe {

ir::Graph training_step(Graph& g, const Tensor& loss, const Optimizer& optimizer, const TrainingOptions& options,
                        Where at) {
  Location line;
  {
    const CallSite site(g.builder(), at);
    if (options.precision == f32)
      add_training_step(loss.value(), optimizer, options);
    else
      add_loss_output(loss.value());
    line = g.builder().location();
  }
  const ir::Graph graph = g.finish();
  return options.precision == f32 ? graph : training_step(graph, "loss", optimizer, options, line);
}

}  // namespace lathe
