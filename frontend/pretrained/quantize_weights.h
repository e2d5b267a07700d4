#pragma once

#include "frontend/nn/module.h"
#include "frontend/pretrained/model_files.h"

namespace lathe::pretrained {

/// How the weights of a model are held.
enum class WeightFormat : std::uint8_t {
  stored,  ///< as the files have them
  q8,      ///< matrices in 8 bits with a scale for each block (runtime/parameters/quantize.h), the rest as stored
};

/// Quantizes the weights of all linear layers of a model, and its `table` of embeddings, which is that of the output
/// layer too where both are tied; biases, norms, tables of positions and the matrices of mixtures of experts stay.
/// The blocks run along what a product sums over: 64 neighbours, or the largest power of two from 16 on that divides
/// it; a matrix that has none stays, and so does one of fewer than 16 outputs, such as a router's. One matrix after
/// another, so that no second copy of all weights exists. To be called before the model's graphs are built.
/// UserErrors of quantize().
void quantize_weights(ModelFiles& files, const nn::Module& model, const nn::Parameter& table);

}  // namespace lathe::pretrained
