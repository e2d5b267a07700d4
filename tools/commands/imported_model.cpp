#include "tools/commands/imported_model.h"

#include <utility>

#include "frontend/dsl.h"
#include "models/import/loss/training_graphs.h"
#include "passes/transforms/dce.h"
#include "tools/options/precision_option.h"

namespace lathe::tools {

ir::Graph imported_model(const importing::ImportedGraph& imported, const ImportedTraining& training) {
  if (!training.loss) return ir::dce(with_precision(imported.graph.finish(), training.precision));
  const importing::AttachedLoss loss = importing::parse_loss(*training.loss);
  if (!training.step) return ir::dce(with_precision(importing::loss_graph(imported, loss), training.precision));
  TrainingOptions options = training.step->options;
  options.frozen = importing::names_with_any(imported.graph, training.frozen);
  return ir::dce(importing::training_graphs(imported, loss, training.step->optimizer, options).step);
}

}  // namespace lathe::tools
