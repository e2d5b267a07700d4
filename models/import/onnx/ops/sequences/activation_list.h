#pragma once

#include <string_view>
#include <vector>

#include "frontend/nn/recurrent/cells.h"
#include "models/import/onnx/ops/op_functions.h"

namespace lathe::onnx {

/// Returns the activation functions of an LSTM, a GRU or an RNN, for each direction one after the other: those of the
/// attribute `activations`, with numbers from activation_alpha and activation_beta, or `defaults` for each direction.
/// Throws [import_attribute] for an unknown function
/// and for a wrong number of functions, alphas or betas.
std::vector<nn::CellFunction> activation_list(const OpCall& call, const std::vector<std::string>& defaults,
                                              std::size_t directions);

}  // namespace lathe::onnx
