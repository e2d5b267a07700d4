#pragma once

#include <string>
#include <vector>

#include "frontend/train/training.h"
#include "models/import/import.h"
#include "models/import/loss/attached_loss.h"

namespace lathe::importing {

/// The graph of a loss, as loss_graph() returns it, and the step that trains the parameters.
struct TrainingGraphs {
  ir::Graph forward, step;
};

/// Attaches a loss to an imported graph. Returns the graph of the loss alone, with the output "loss". The outputs of
/// the graph are removed, so call it once per import. Throws UserErrors of attach_loss().
ir::Graph loss_graph(const ImportedGraph& imported, const AttachedLoss& loss);

/// Attaches a loss to an imported graph and differentiates it. Parameters that the file does not train are frozen,
/// and so are those that `options.frozen` selects. The outputs of the graph are removed, so call it once per
/// import. Throws UserErrors of attach_loss() and training_step().
TrainingGraphs training_graphs(const ImportedGraph& imported, const AttachedLoss& loss, const Optimizer& optimizer,
                               const TrainingOptions& options);

/// Selects the parameters of a graph whose names contain one of the texts. Throws UserError [import_frozen] for a
/// text that no name contains.
ParameterFilter names_with_any(const Graph& graph, const std::vector<std::string>& texts);

}  // namespace lathe::importing
