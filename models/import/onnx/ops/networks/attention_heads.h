#pragma once

#include <cstdint>

#include "models/import/onnx/ops/op_functions.h"

/// Functions that the ops of attention of all domains share. Tensors of heads are [B, h, S, d].
namespace lathe::onnx {

/// [B, S, h * d] -> [B, h, S, d]. Throws [import_attribute] if the columns do not divide into the heads.
Tensor split_heads(const OpCall& call, const Tensor& x, std::int64_t heads);

/// [B, h, S, d] -> [B, S, h * d]
Tensor merged_heads(const Tensor& x);

/// Repeats each key or value head for the `heads` / h query heads in a row that it serves. Throws [import_size].
Tensor repeated_heads(const OpCall& call, const Tensor& x, const Dim& heads);

/// Rotates the first 2 * n elements of each head by angles with these cosines and sines [B or 1, S, n]: pairs of
/// elements next to each other if `interleaved`, otherwise of the two halves.
Tensor rotated_heads(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved);

/// Adds a mask to scores: a bool one excludes keys, a float one is a bias.
Tensor with_mask(const Tensor& scores, const Tensor& mask);

}  // namespace lathe::onnx
