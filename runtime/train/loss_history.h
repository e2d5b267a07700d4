#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "runtime/files/checkpoint.h"

namespace lathe {

struct LossPoint {
  std::int64_t step = 0;  ///< number of steps completed before the loss was recorded
  double loss = 0;

  bool operator==(const LossPoint&) const = default;
};

/// Losses of a run so far. Checkpoints store them as records.
struct LossHistory {
  std::vector<LossPoint> training;    ///< one per step
  std::vector<LossPoint> evaluation;  ///< one per evaluation

  bool operator==(const LossHistory&) const = default;

  /// Returns tensors "history.step" i64 [n], "history.loss" f64 [n], and the same with "history.validation".
  Tensors tensors() const;
  /// Reads them from tensors.
  static LossHistory of(const Tensors& tensors);
  /// Throws UserError [checkpoint_invalid] if the records are inconsistent.
  static LossHistory of(const Checkpoint& checkpoint);
};

}  // namespace lathe
