#pragma once

#include "models/import/ops/tensor_functions.h"

/// Norms over the dims from an axis on.
namespace lathe::importing {

/// (x - mean) / sqrt(variance + epsilon) * weight + bias. An empty weight or bias is left out. They broadcast to x.
Tensor layer_norm_over(const Tensor& x, int axis, const Tensor& weight, const Tensor& bias, double epsilon);

/// x / sqrt(mean of squares + epsilon) * weight. An empty weight is left out.
Tensor rms_norm_over(const Tensor& x, int axis, const Tensor& weight, double epsilon);

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, for vectors with one element per channel, in dim 1. An
/// empty weight or bias is left out.
Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                       const Tensor& bias, double epsilon);

}  // namespace lathe::importing
