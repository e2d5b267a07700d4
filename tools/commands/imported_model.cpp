#include "tools/commands/imported_model.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "models/import/loss/attached_loss.h"
#include "passes/transforms/dce.h"
#include "tools/options/precision_option.h"

namespace lathe::tools {

namespace {

/// Selects the parameters whose names contain a text of the list. Throws UserError [usage] if no name contains a
/// text.
ParameterFilter frozen_parameters(const Parameters& parameters, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  const std::vector<std::string> names = parameters.names();
  for (const std::string& text : texts)
    if (std::ranges::none_of(names, [&](const std::string& name) { return name.find(text) != std::string::npos; }))
      throw UserError(fmt::format("--freeze {}: no parameter has a name with this text", text), "usage",
                      fmt::format("the parameters are {}", fmt::join(names, ", ")));
  return names_with(texts);
}

}  // namespace

ir::Graph imported_model(const importing::ImportedGraph& imported, const ImportedTraining& training) {
  if (!training.loss) return ir::dce(with_precision(imported.graph.finish(), training.precision));
  const Tensor loss = importing::attach_loss(imported, importing::parse_loss(*training.loss));
  if (!training.step) imported.graph.output("loss", loss);
  ir::Graph graph = training.step ? training_step(imported.graph, loss, AdamW{.lr = training.lr},
                                                  {.precision = *parse_dtype(training.precision),
                                                   .frozen = frozen_parameters(imported.parameters, training.frozen)})
                                  : with_precision(imported.graph.finish(), training.precision);
  std::erase_if(graph.outputs, [&](const ir::Output& output) { return imported.outputs.contains(output.name); });
  return ir::dce(std::move(graph));
}

}  // namespace lathe::tools
