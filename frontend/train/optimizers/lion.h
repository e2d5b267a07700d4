#pragma once

#include "frontend/train/optimizer.h"

namespace lathe {

/// p *= 1 - lr * weight_decay;  p -= lr * sign(beta1 * m + (1 - beta1) * g);  m = beta2 * m + (1 - beta2) * g.
/// Lion (Chen et al. 2023, algorithm 2); the state is "optimizer.m.<parameter>". Use a rate 3 to 10 times below
/// AdamW's, and a weight decay 3 to 10 times above.
struct Lion {
  Schedule lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
