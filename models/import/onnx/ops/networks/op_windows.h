#pragma once

#include "models/import/onnx/ops/op_functions.h"

namespace lathe::onnx {

/// The windows of a convolution or a pool, one number for each spatial dim of x [batch, channels, ..].
struct Windows {
  Ints size, stride, dilation;
  Ints low, high;  ///< padding before and after the dim
  Ints excess;     ///< more padding after the dim, which ceil_mode adds for the last window

  std::int64_t extent(std::size_t i) const { return dilation[i] * (size[i] - 1) + 1; }
};

/// Reads strides, dilations, pads and auto_pad of windows of the given sizes. Throws [import_attribute], and
/// [import_size] if the padding depends on an unknown size.
Windows windows_of(const OpCall& call, const Tensor& x, Ints size);

/// The same for an op with an output for each window, so that their number must be a polynomial of sizes. ceil_mode
/// rounds it up. Throws SizeMultiple if the stride does not divide an unknown size.
Windows whole_windows_of(const OpCall& call, const Tensor& x, Ints size, bool rounds_up = false);

/// Pads the spatial dims of x with a value.
Tensor padded_for(const Tensor& x, const Windows& windows, const Number& value, const Number& excess_value);

/// Combines the elements of each window, in row-major order of the last dim first.
Tensor over_windows(const Tensor& x, const Windows& windows, const auto& combine) {
  Tensor result = x;
  for (std::size_t i = windows.size.size(); i-- > 0;) {
    const Tensor elements =
        unfold(result, static_cast<int>(i) + 2,
               {.size = windows.size[i], .step = windows.stride[i], .dilation = windows.dilation[i]});
    result = elements.select(-1, 0);
    for (std::int64_t k = 1; k < windows.size[i]; ++k) result = combine(result, elements.select(-1, k));
  }
  return result;
}

}  // namespace lathe::onnx
