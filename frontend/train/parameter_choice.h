#pragma once

#include <string>
#include <vector>

#include "frontend/train/training.h"
#include "ir/tensor/builder.h"

namespace lathe::detail {

/// The float parameters of a graph, by how a training step uses them.
struct ParameterChoice {
  std::vector<ir::Value> candidates;  ///< selected by the options
  std::vector<std::string> frozen;    ///< excluded by TrainingOptions::frozen
  std::vector<std::string> left_out;  ///< not selected by TrainingOptions::trainable
  std::vector<std::string> unused;    ///< candidates that the loss does not depend on
};

ParameterChoice choose_parameters(ir::GraphBuilder& builder, const TrainingOptions& options);

/// Returns "trains 2 of 4 parameters, 5 of 25 numbers; frozen: a.weight, a.bias". `trained`: the candidates that the
/// loss depends on.
std::string summary_of(const ParameterChoice& choice, const std::vector<ir::Value>& trained);

/// Throws UserError [train_parameters], which names the frozen and left out parameters, because nothing is trained.
[[noreturn]] void throw_none_trained(const ParameterChoice& choice, const ir::Value& loss);

}  // namespace lathe::detail
