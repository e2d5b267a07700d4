#include "models/import/ops/vision/sampling.h"

#include "models/import/ops/indexing_functions.h"

namespace lathe::importing {

Tensor elements_at(const Tensor& x, const std::vector<Tensor>& positions) {
  const Graph graph = x.graph();
  const int dims = static_cast<int>(positions.size());
  const auto last = [&](int i) { return graph.dim_value(x.size(i + 2)).to(positions[0].dtype()) - 1.0; };
  Tensor is_inside;
  for (int i = 0; i < dims; ++i) {
    const Tensor& at = positions[static_cast<std::size_t>(i)];
    const Tensor fits = (at >= 0.0) & (at <= last(i));
    is_inside = is_inside.is_empty() ? fits : is_inside & fits;
  }
  const Tensor numbers = linear_index(graph, x.shape(), 2, x.rank(), [&](int i) {
    const Tensor& at = positions[static_cast<std::size_t>(i - 2)];
    // NaN has no element: maximum() would keep it.
    return where(is_inside, at, 0.0).to(i64);
  });
  const Dim count = numbers.size(1);
  const Tensor flat = x.flatten(2, x.rank() - 1);
  const Tensor found = take_along(flat, numbers.unsqueeze(1).expand({x.size(0), x.size(1), count}), 2);
  return where(is_inside.unsqueeze(1), found, 0);
}

Neighbours linear_neighbours(const Tensor& position) {
  const Tensor low = position.floor(), rest = position - low;
  return {{low, low + 1.0}, {1.0 - rest, rest}};
}

Neighbours cubic_neighbours(const Tensor& position) {
  constexpr double a = -0.75;
  const Tensor low = position.floor(), rest = position - low;
  const auto outer = [](const Tensor& t) { return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a; };
  const auto inner = [](const Tensor& t) { return (t * (a + 2) - (a + 3)) * t * t + 1.0; };
  return {{low - 1.0, low, low + 1.0, low + 2.0},
          {outer(rest + 1.0), inner(rest), inner(1.0 - rest), outer(2.0 - rest)}};
}

Tensor interpolated(const Tensor& x, const std::vector<Neighbours>& neighbours) {
  std::size_t combinations = 1;
  for (const Neighbours& along : neighbours) combinations *= along.positions.size();
  Tensor total;
  for (std::size_t number = 0; number < combinations; ++number) {
    std::vector<Tensor> positions;
    Tensor weight;
    std::size_t rest = number;
    for (const Neighbours& along : neighbours) {
      const std::size_t i = rest % along.positions.size();
      rest /= along.positions.size();
      positions.push_back(along.positions[i]);
      weight = weight.is_empty() ? along.weights[i] : weight * along.weights[i];
    }
    const Tensor term = elements_at(x, positions) * weight.unsqueeze(1).to(x.dtype());
    total = total.is_empty() ? term : total + term;
  }
  return total;
}

}  // namespace lathe::importing
