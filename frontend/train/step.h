#pragma once

#include "frontend/graph.h"
#include "frontend/train/named_gradient.h"
#include "frontend/train/training.h"

namespace lathe {

/// The whole training step of a model as one graph: forward, backward, clipping and the update of every parameter in
/// place (see frontend/train/training.h). Parameters that modules froze stay as they are. The step is made of a copy:
/// `g` stays as it is, for an evaluation or another step, and g.initializers() says how the parameters start. Throws
/// UserError as add_training_step does, and [op_other_graph] for a loss of another Graph.
///
///   ir::Graph step = training_step(g, model.loss(tokens), AdamW{.lr = 3e-4});
ir::Graph training_step(const Graph& g, const Tensor& loss, const Optimizer& optimizer,
                        const TrainingOptions& options = {}, Where at = Where::current());

}  // namespace lathe
