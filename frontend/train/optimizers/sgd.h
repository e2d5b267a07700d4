#pragma once

#include "frontend/train/optimizer.h"

namespace lathe {

/// g += weight_decay * p;  buffer = momentum * buffer + g;  p -= lr * (nesterov ? g + momentum * buffer : buffer).
/// As torch.optim.SGD without dampening; the state is "optimizer.momentum.<parameter>".
struct SGD {
  Schedule lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
