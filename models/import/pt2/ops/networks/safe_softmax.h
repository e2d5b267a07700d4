#pragma once

#include <optional>

#include "frontend/tensor.h"

namespace lathe::pt2 {

/// Returns softmax with zero_masked if where(condition, zeros, weights) computes it: weights are a softmax, and the
/// condition is true where all of its scores are -inf. PyTorch decomposes attention to this form; as one op,
/// attention is fused.
std::optional<Tensor> safe_softmax_of(const Tensor& condition, const Tensor& zeros, const Tensor& weights);

}  // namespace lathe::pt2
