#pragma once

#include "frontend/graph.h"
#include "frontend/training.h"

namespace lathe {

/// The whole training step of a model as one graph: forward, backward, clipping and the update of every parameter in
/// place (see frontend/training.h). Takes what `g` has built; g.initializers() still tells how the parameters start.
///
///   ir::Graph step = training_step(g, model.loss(tokens), AdamW{.lr = 3e-4});
ir::Graph training_step(Graph& g, const Tensor& loss, const Optimizer& optimizer, const TrainingOptions& options = {},
                        Where at = Where::current());

}  // namespace lathe
