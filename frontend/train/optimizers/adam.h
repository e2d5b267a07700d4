#pragma once

#include "frontend/train/optimizer.h"

namespace lathe {

/// torch.optim.Adam: weight decay is added to the gradient (Kingma and Ba 2015, algorithm 1). The states are
/// "optimizer.m.<parameter>" and "optimizer.v.<parameter>".
struct Adam {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

/// torch.optim.AdamW, in its order: p *= 1 - lr * weight_decay, then Adam's step
/// p -= (lr / (1 - beta1^t)) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)   (Loshchilov and Hutter 2019, algorithm 2).
struct AdamW {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

namespace detail {

/// Returns 1 - beta^step, an f64 scalar: the weight of all gradients in a mean with decay `beta` that starts at zero.
Tensor bias_correction(const ParameterUpdate& update, double beta);
/// Returns p, after AdamW's decay p *= 1 - rate * weight_decay if the parameter decays.
Tensor decayed(const ParameterUpdate& update, double weight_decay);

}  // namespace detail

}  // namespace lathe
