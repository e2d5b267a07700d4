#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/files/checkpoint.h"

namespace lathe {

struct LossPoint {
  std::int64_t step = 0;  ///< done when the loss was taken
  double loss = 0;

  bool operator==(const LossPoint&) const = default;
};

/// The losses of a run so far, which a checkpoint keeps as records.
struct LossHistory {
  std::vector<LossPoint> training;    ///< one a step
  std::vector<LossPoint> evaluation;  ///< one an evaluation

  bool operator==(const LossHistory&) const = default;

  /// Tensors "history.step" i64 [n], "history.loss" f64 [n], and the same of "history.validation".
  std::map<std::string, HostTensor> tensors() const;
  /// Reads them back.
  static LossHistory of(const std::map<std::string, HostTensor>& tensors);
  /// UserError [checkpoint_invalid] where they do not fit each other.
  static LossHistory of(const Checkpoint& checkpoint);
};

}  // namespace lathe
