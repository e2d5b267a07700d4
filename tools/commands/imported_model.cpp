#include "tools/commands/imported_model.h"

#include <utility>

#include "frontend/dsl.h"
#include "models/import/loss/training_graphs.h"
#include "passes/transforms/dce.h"
#include "tools/options/precision_option.h"

namespace lathe::tools {

ir::Graph imported_model(const importing::ImportedGraph& imported, const ImportedTraining& training) {
  if (!training.loss) return ir::dce(with_precision(imported.graph.finish(), training.precision));
  const Tensor loss = importing::attach_loss(imported, importing::parse_loss(*training.loss));
  if (!training.step) imported.graph.output("loss", loss);
  ir::Graph graph = training.step
                        ? training_step(imported.graph, loss, AdamW{.lr = training.lr},
                                        {.precision = *parse_dtype(training.precision),
                                         .frozen = importing::names_with_any(imported.parameters, training.frozen)})
                        : with_precision(imported.graph.finish(), training.precision);
  std::erase_if(graph.outputs, [&](const ir::Output& output) { return imported.outputs.contains(output.name); });
  return ir::dce(std::move(graph));
}

}  // namespace lathe::tools
