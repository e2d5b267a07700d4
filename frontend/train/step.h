#pragma once

#include "frontend/graph.h"
#include "frontend/train/named_gradient.h"
#include "frontend/train/training.h"

namespace lathe {

/// Returns the whole training step of a model as one graph: forward, backward, clipping and the in-place update of
/// every parameter (see frontend/train/training.h). Parameters that modules froze are not updated. The step is built
/// in a copy: `g` is unchanged and can be used for evaluation or another step, and g.initializers() has the initial
/// values of the parameters. Throws the UserErrors of add_training_step, and [op_other_graph] for a loss of another
/// Graph.
///
///   ir::Graph step = training_step(g, model.loss(tokens), AdamW{.lr = 3e-4});
ir::Graph training_step(const Graph& g, const Tensor& loss, const Optimizer& optimizer,
                        const TrainingOptions& options = {}, Where at = Where::current());

}  // namespace lathe
