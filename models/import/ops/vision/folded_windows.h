#pragma once

#include "models/import/ops/tensor_functions.h"

namespace lathe::importing {

/// The windows along one dim.
struct FoldedWindows {
  std::int64_t stride = 1, dilation = 1;
  Dim padding = 0;  ///< of the dim at its start, which the result leaves out
  Dim size = 0;     ///< of the result
};

/// Adds the elements of windows to their places: the transpose of reading windows. `elements` is the dim of the
/// elements of a window, of known size, and `windows` that of the windows, which the result has `size` elements of a
/// signal in place of. Windows may begin and end outside of the signal.
Tensor folded(const Tensor& x, int elements, int windows, const FoldedWindows& options);

}  // namespace lathe::importing
