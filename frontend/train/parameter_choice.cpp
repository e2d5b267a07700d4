#include "frontend/train/parameter_choice.h"

#include <fmt/core.h>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe::detail {

namespace {

std::string listed(const std::vector<std::string>& names) {
  return list_of(std::vector<std::string_view>(names.begin(), names.end()));
}

/// Returns "; frozen: a.weight, a.bias", or an empty text for no names.
std::string part(std::string_view title, const std::vector<std::string>& names) {
  return names.empty() ? "" : fmt::format("; {}: {}", title, listed(names));
}

std::string rest(const ParameterChoice& choice) {
  return part("frozen", choice.frozen) + part("not chosen by `trainable`", choice.left_out) +
         part("not used by the loss", choice.unused);
}

bool is_float_parameter(const ir::Node& node) { return node.op == &ir::ops::parameter && is_float(node.type.dtype); }

}  // namespace

ParameterChoice choose_parameters(ir::GraphBuilder& builder, const TrainingOptions& options) {
  ParameterChoice choice;
  for (const ir::ValueId id : builder.graph().arguments()) {
    const ir::Node& node = builder.graph()[id];
    if (!is_float_parameter(node)) continue;
    if (options.trainable && !options.trainable(node))
      choice.left_out.push_back(node.name);
    else if (options.frozen && options.frozen(node))
      choice.frozen.push_back(node.name);
    else
      choice.candidates.emplace_back(builder, id);
  }
  return choice;
}

std::string summary_of(const ParameterChoice& choice, const std::vector<ir::Value>& trained) {
  Dim all = 0, own = 0;
  std::size_t count = 0;
  const ir::Graph& graph = trained.front().builder().graph();
  for (const ir::ValueId id : graph.arguments())
    if (is_float_parameter(graph[id])) all = all + graph[id].type.shape.numel(), ++count;
  for (const ir::Value& parameter : trained) own = own + parameter.shape().numel();
  if (count == trained.size()) return fmt::format("trains all {} parameters, {} numbers", count, own.to_string());
  return fmt::format("trains {} of {} parameters, {} of {} numbers{}", trained.size(), count, own.to_string(),
                     all.to_string(), rest(choice));
}

void throw_none_trained(const ParameterChoice& choice, const ir::Value& loss) {
  const Location& line = loss.builder().location();
  const std::string why = rest(choice);
  throw UserError(line.known() ? line : loss.node().loc, "training_step",
                  "the loss depends on no trainable parameter" + why, "train_parameters",
                  !choice.frozen.empty()     ? "freeze(false) lets a parameter be trained"
                  : !choice.left_out.empty() ? "choose names of parameters that the loss uses"
                                             : "declare the weights with parameter()");
}

}  // namespace lathe::detail
