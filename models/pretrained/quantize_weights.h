#pragma once

#include <optional>

#include "frontend/nn/module.h"
#include "models/pretrained/model_files.h"

namespace lathe::pretrained {

/// Storage format of a model's weights.
enum class WeightFormat : std::uint8_t {
  stored,  ///< as the files have them
  q8,      ///< matrices in 8 bits with a scale per block (runtime/parameters/quantize.h), the rest as stored
};

/// Quantizes the weights of all linear layers of a model and its embedding `table`, if it has one, which may
/// be shared with the output layer. Biases, norms, position tables and the matrices of mixtures of experts are not
/// quantized.
///
/// Blocks run along the reduced dim of the matmul: 64 neighbours, or the largest power of two >= 16 that divides the
/// dim. Matrices without such a block size, or with fewer than 16 outputs (such as a router's), are not quantized.
/// Converts one matrix at a time, so there is no second copy of all weights. Call it before building the model's
/// graphs. Throws UserErrors of quantize().
void quantize_weights(ModelFiles& files, const nn::Module& model, const std::optional<nn::Parameter>& table);

}  // namespace lathe::pretrained
