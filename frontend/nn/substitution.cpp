#include "frontend/nn/substitution.h"

#include <utility>

#include "ir/support/error.h"

namespace lathe::nn {

namespace {

/// Returns the graph of the tensors, after checks.
Graph graph_of(const Module& module, const std::map<std::string, Tensor>& tensors, const Where& at) {
  if (tensors.empty())
    throw UserError(Location(at), "substitution", "there are no tensors", "tensor_empty",
                    "name at least one parameter");
  for (const auto& [name, tensor] : tensors) {
    (void)module.parameter(name);
    (void)tensor.value(at);
  }
  return tensors.begin()->second.graph(at);
}

Substitution::Replace by_name(std::map<std::string, Tensor> tensors) {
  return [tensors = std::move(tensors)](const Parameter& parameter) -> std::optional<Tensor> {
    const auto found = tensors.find(parameter.name());
    return found == tensors.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace

Substitution::Substitution(const Graph& graph, Replace replace) : graph_(detail::state_of(graph)) {
  graph_->substitutions.push_back(std::move(replace));
}

Substitution::Substitution(const Module& module, std::map<std::string, Tensor> tensors, Where at)
    : Substitution(graph_of(module, tensors, at), by_name(tensors)) {}

Substitution::~Substitution() { graph_->substitutions.pop_back(); }

}  // namespace lathe::nn
