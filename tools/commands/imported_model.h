#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/import/import.h"

namespace lathe::tools {

/// The loss and the training step of a graph from another system.
struct ImportedTraining {
  std::optional<std::string> loss = {};  ///< KIND:OUTPUT,TARGET; none: the graph keeps its outputs
  bool step = false;                     ///< with AdamW at the constant rate `lr`
  double lr = 3e-4;
  bool report_norm = true;               ///< whether the step has the norm of all gradients as an output
  std::vector<std::string> frozen = {};  ///< parts of the names of parameters that the step does not train
  std::string precision = "f32";
};

/// Returns the graph without unused ops, the graph of the loss alone, or its training step. Throws UserErrors: those
/// of importing::attach_loss and importing::names_with_any.
ir::Graph imported_model(const importing::ImportedGraph& imported, const ImportedTraining& training);

}  // namespace lathe::tools
