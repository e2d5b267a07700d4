#include "models/import/loss/training_graphs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/dsl.h"
#include "ir/support/error.h"

namespace lathe::importing {

namespace {

/// Attaches the loss, in place of the outputs of the graph.
Tensor loss_alone(const ImportedGraph& imported, const AttachedLoss& loss) {
  Tensor value = attach_loss(imported, loss);
  imported.graph.builder().drop_outputs();
  return value;
}

}  // namespace

ir::Graph loss_graph(const ImportedGraph& imported, const AttachedLoss& loss) {
  imported.graph.output("loss", loss_alone(imported, loss));
  return imported.graph.finish();
}

TrainingGraphs training_graphs(const ImportedGraph& imported, const AttachedLoss& loss, const Optimizer& optimizer,
                               const TrainingOptions& options) {
  const Tensor value = loss_alone(imported, loss);
  ir::Graph step = training_step(imported.graph, value, optimizer, options);
  imported.graph.output("loss", value);
  return {.forward = imported.graph.finish(), .step = std::move(step)};
}

ParameterFilter names_with_any(const Graph& graph, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::vector<std::string> names;
  for (const Tensor& parameter : graph.parameters()) names.push_back(parameter.value().node().name);
  for (const std::string& text : texts)
    if (std::ranges::none_of(names, [&](const std::string& name) { return name.find(text) != std::string::npos; }))
      throw UserError(fmt::format("cannot freeze {}: no parameter has this text in its name", text), "import_frozen",
                      fmt::format("the parameters are {}", fmt::join(names, ", ")));
  return names_with(texts);
}

}  // namespace lathe::importing
