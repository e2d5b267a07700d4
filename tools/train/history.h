#pragma once

#include <vector>

#include "runtime/files/checkpoint.h"
#include "tools/train/loss_curve.h"

namespace lathe::tools {

/// The losses of a run so far, which a checkpoint keeps as records.
struct History {
  std::vector<CurvePoint> training, validation;

  /// Tensors "history.step" i64 [n], "history.loss" f64 [n], and the same of the validation.
  std::map<std::string, HostTensor> tensors() const;
  /// Reads them back. UserError [checkpoint_invalid] where they do not fit each other.
  static History of(const Checkpoint& checkpoint);
};

}  // namespace lathe::tools
