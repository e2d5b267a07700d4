#pragma once

#include <string>
#include <vector>

#include "frontend/train/training.h"
#include "ir/tensor/builder.h"

namespace lathe::detail {

/// The float parameters of a graph by what a training step does with them.
struct ParameterChoice {
  std::vector<ir::Value> candidates;  ///< chosen by the options
  std::vector<std::string> frozen;    ///< that TrainingOptions::frozen leaves alone
  std::vector<std::string> left_out;  ///< that TrainingOptions::trainable does not choose
  std::vector<std::string> unused;    ///< candidates that the loss does not depend on
};

ParameterChoice choose_parameters(ir::GraphBuilder& builder, const TrainingOptions& options);

/// "trains 2 of 4 parameters, 5 of 25 numbers; frozen: a.weight, a.bias". `trained`: the candidates that the loss
/// depends on.
std::string summary_of(const ParameterChoice& choice, const std::vector<ir::Value>& trained);

/// Throws UserError [train_parameters] where nothing is trained: it names what is frozen or left out.
[[noreturn]] void throw_none_trained(const ParameterChoice& choice, const ir::Value& loss);

}  // namespace lathe::detail
