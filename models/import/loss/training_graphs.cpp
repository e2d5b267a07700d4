#include "models/import/loss/training_graphs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/dsl.h"
#include "ir/support/error.h"

namespace lathe::importing {

namespace {

ir::Graph without_outputs(ir::Graph graph, const ImportedGraph& imported) {
  std::erase_if(graph.outputs, [&](const ir::Output& output) { return imported.outputs.contains(output.name); });
  return graph;
}

/// Returns the graph whose only output is the loss.
ir::Graph graph_of(const ImportedGraph& imported, const Tensor& loss) {
  imported.graph.output("loss", loss);
  return without_outputs(imported.graph.finish(), imported);
}

}  // namespace

ir::Graph loss_graph(const ImportedGraph& imported, const AttachedLoss& loss) {
  return graph_of(imported, attach_loss(imported, loss));
}

TrainingGraphs training_graphs(const ImportedGraph& imported, const AttachedLoss& loss, const Optimizer& optimizer,
                               const TrainingOptions& options) {
  const Tensor value = attach_loss(imported, loss);
  ir::Graph step = without_outputs(training_step(imported.graph, value, optimizer, options), imported);
  return {.forward = graph_of(imported, value), .step = std::move(step)};
}

ParameterFilter names_with_any(const Parameters& parameters, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  const std::vector<std::string> names = parameters.names();
  for (const std::string& text : texts)
    if (std::ranges::none_of(names, [&](const std::string& name) { return name.find(text) != std::string::npos; }))
      throw UserError(fmt::format("cannot freeze {}: no parameter has this text in its name", text), "import_frozen",
                      fmt::format("the parameters are {}", fmt::join(names, ", ")));
  return names_with(texts);
}

}  // namespace lathe::importing
