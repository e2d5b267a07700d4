#pragma once

#include "models/import/ops/tensor_functions.h"

/// Windows that frames of signals are multiplied by. A periodic window of n elements is the first n of one with n
/// + 1.
namespace lathe::importing {

struct CosineTerms {
  double a, b, c = 0;
};

/// Returns a - b cos(2 pi k / length) + c cos(4 pi k / length) for each element k of a window of `size` elements,
/// f64.
Tensor cosine_window(const Graph& graph, const Dim& size, bool is_periodic, const CosineTerms& terms);

/// Returns a window that rises from 0 to 1 and falls to 0 along straight lines, f64.
Tensor triangle_window(const Graph& graph, const Dim& size, bool is_periodic);

/// Returns the Kaiser window, f64: I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1.
Tensor kaiser_window(const Graph& graph, const Dim& size, bool is_periodic, double beta);

}  // namespace lathe::importing
