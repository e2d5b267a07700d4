#pragma once

#include <string>

#include "models/import/ops/tensor_functions.h"

/// Resizing along an axis of known size. Resizing is separable: along each axis, the result is a matrix
/// [outputs, inputs] times the elements.
namespace lathe::importing {

/// One axis of a resize.
struct KnownResize {
  int axis = 0;
  std::int64_t inputs = 0, outputs = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

/// The names of modes are those of ONNX's Resize.
struct ResizeOptions {
  std::string mode, coordinates, nearest;
  bool antialias = false, excludes_outside = false;
  double cubic = -0.75, extrapolation = 0;
};

/// Returns x resized along an axis.
Tensor resized(const OpCall& call, const Tensor& x, const ResizeOptions& o, const KnownResize& a);

}  // namespace lathe::importing
