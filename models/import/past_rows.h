#pragma once

#include <optional>

#include "frontend/tensor.h"

namespace lathe::importing {

/// Inputs with rows of the runs before, such as past keys, that a graph keeps in states (ImportOptions::caches).
class PastRows {
 public:
  virtual ~PastRows() = default;

  /// Returns whether a tensor is such an input.
  virtual bool contains(const Tensor& past) const = 0;
  /// Writes new rows to the state after those of `past`, and returns all rows so far: [.., past + added, ..]. Returns
  /// nothing for a tensor that is no such input, that is kept along another dim, or that has new rows already.
  virtual std::optional<Tensor> join(const Tensor& past, const Tensor& rows, int dim) = 0;
};

}  // namespace lathe::importing
