#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frontend/nn/module.h"

namespace lathe::nn {

/// While alive, modules read other tensors in place of their parameters, in one graph: weights after an inner step
/// (meta-learning), those of a target network, or averages.
///
///   const nn::Substitution average(g, [&](const nn::Parameter& p) {
///     return g.state("optimizer.average." + p.name(), p.dtype(), p.shape());
///   });
///   g.output("loss", model.loss(tokens));
///
/// Substitutions nest: the innermost one that returns a tensor applies, and the function itself sees the outer ones.
/// It runs outside of all scopes. A tensor must have the dtype and shape of the parameter, which must not be stored
/// quantized [parameter_replaced].
class Substitution {
 public:
  /// Returns the tensor for a parameter, or nothing to use the parameter itself.
  using Replace = std::function<std::optional<Tensor>(const Parameter& parameter)>;

  Substitution(const Graph& graph, Replace replace);
  /// Replaces parameters of `module` by name, in the graph of the tensors. Throws UserError [parameter_unknown] for a
  /// name that is no parameter of the module, and [tensor_empty] for an empty map or tensor.
  Substitution(const Module& module, std::map<std::string, Tensor> tensors, Where at = Where::current());
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::shared_ptr<detail::GraphState> graph_;
};

}  // namespace lathe::nn
