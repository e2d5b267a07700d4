#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/import/import.h"
#include "tools/train/written_step.h"

namespace lathe::tools {

/// The loss and the training step of a graph from another system.
struct ImportedTraining {
  std::optional<std::string> loss = {};         ///< KIND:OUTPUT,TARGET; none: the graph keeps its outputs
  std::optional<WrittenStep::Built> step = {};  ///< none: the loss alone
  std::vector<std::string> frozen = {};         ///< parts of the names of parameters that the step does not train
  std::string precision = "f32";
};

/// Returns the graph without unused ops, the graph of the loss alone, or its training step. Throws UserErrors: those
/// of importing::attach_loss and importing::names_with_any.
ir::Graph imported_model(const importing::ImportedGraph& imported, const ImportedTraining& training);

}  // namespace lathe::tools
