#include "models/import/ops/signal/signal_windows.h"

#include <numbers>

#include "models/import/ops/special_functions.h"

namespace lathe::importing {

namespace {

/// k / length for each element k, where the last element of a window that is not periodic is at 1.
Tensor places(const Graph& graph, const Dim& size, bool is_periodic) {
  const Tensor length = graph.dim_value(is_periodic ? size : size - Dim(1));
  return graph.arange(size, i64).to(f64) / length.to(f64);
}

}  // namespace

Tensor cosine_window(const Graph& graph, const Dim& size, bool is_periodic, const CosineTerms& terms) {
  const Tensor angle = places(graph, size, is_periodic) * (2 * std::numbers::pi);
  return terms.a - cos(angle) * terms.b + cos(angle * 2.0) * terms.c;
}

Tensor triangle_window(const Graph& graph, const Dim& size, bool is_periodic) {
  return 1.0 - abs(places(graph, size, is_periodic) * 2.0 - 1.0);
}

Tensor kaiser_window(const Graph& graph, const Dim& size, bool is_periodic, double beta) {
  const Tensor t = places(graph, size, is_periodic) * 2.0 - 1.0;
  const Tensor width = sqrt(maximum(1.0 - square(t), 0.0));
  return bessel_i(width * beta, 0, false) / bessel_i(graph.constant(beta, f64), 0, false);
}

}  // namespace lathe::importing
