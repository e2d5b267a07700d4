#pragma once

#include <optional>

#include "frontend/train/optimizer.h"

namespace lathe {

/// torch.optim.Adafactor (Shazeer and Stern 2018, algorithms 4 and 5): the second moment of a matrix [.., n, m] is
/// the product of a column [.., n, 1] and a row [.., 1, m], so that its states are small. Steps are relative to the
/// root mean square of the parameter. The states are "optimizer.row.<parameter>" and "optimizer.column.<parameter>",
/// for vectors and scalars "optimizer.v.<parameter>".
struct Adafactor {
  Schedule lr = 1e-2;               ///< upper bound of the relative step, min(lr, 1 / sqrt(step))
  double beta2_decay = -0.8;        ///< the moments decay by 1 - step^beta2_decay
  std::optional<double> eps1 = {};  ///< smallest root of a second moment; by default the dtype's epsilon
  double eps2 = 1e-3;               ///< smallest root mean square of a parameter
  double clipping = 1;              ///< largest root mean square of an update before its step size: torch's d
  double weight_decay = 0;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
