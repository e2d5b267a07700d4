#include "models/import/pt2/ops/networks/pool_positions.h"

#include <limits>

namespace lathe::pt2 {

namespace {

/// Returns one number for each spatial dim; 0 is replaced by the number in `other`.
Ints each_dim(const OpCall& call, const PerDim& numbers, std::size_t count, const Ints& other) {
  Ints all = numbers.numbers;
  if (all.size() == 1) all.resize(count, all[0]);
  if (all.size() != count) call.fail("an argument has too few numbers", "import_attribute");
  for (std::size_t i = 0; i < count && !other.empty(); ++i)
    if (all[i] == 0) all[i] = other[i];
  return all;
}

}  // namespace

Tensor max_positions(const OpCall& call, const Tensor& x, const PoolOptions& options, const Shape& sizes) {
  const auto count = static_cast<std::size_t>(x.rank() - 2);
  const Ints size = each_dim(call, options.size, count, {}), stride = each_dim(call, options.stride, count, size),
             padding = each_dim(call, options.padding, count, {}),
             dilation = each_dim(call, options.dilation, count, {});
  Tensor windows = x;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const int dim = static_cast<int>(i) + 2;
    windows = padded(windows, dim, padding[i], padding[i], -std::numeric_limits<double>::infinity());
    windows = windows.unfold(dim, {.size = size[i], .step = stride[i], .dilation = dilation[i]});
    elements *= size[i];
  }
  Shape flat;  // the elements of a window as the last dim
  for (int i = 0; i < x.rank(); ++i) flat.push_back(windows.size(i));
  flat.push_back(elements);
  const Graph graph = x.graph();
  Tensor number = argmax(windows.reshape(flat), -1), position;
  std::int64_t inner = elements;
  for (std::size_t i = 0; i < count; ++i) {
    inner /= size[i];
    const int dim = static_cast<int>(i) + 2;
    const Tensor within = number / inner, window = along_axis(graph.arange(flat[dim], i64), dim, x.rank());
    number = number - within * inner;
    const Tensor extent = graph.dim_value(sizes[dim].unnamed());
    // If all elements of a window are -inf, the first one may be one of the padding.
    const Tensor at = minimum(maximum(window * stride[i] - padding[i] + within * dilation[i], 0), extent - 1);
    position = position.is_empty() ? at : position * extent + at;
  }
  return position;
}

}  // namespace lathe::pt2
