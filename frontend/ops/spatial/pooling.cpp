#include "frontend/ops/spatial/pooling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/spatial/per_dim.h"
#include "ir/ops/functional/functional.h"
#include "ir/support/error.h"

namespace lathe {

using detail::Composed;
using detail::for_each_dim;

namespace {

using Ints = std::vector<std::int64_t>;

struct Pool {
  Ints size, stride, padding, dilation;
};

Pool pool_of(std::string_view op, const Tensor& x, const PoolOptions& o, int spatial, const Where& at) {
  detail::require_spatial_dims(op, x, spatial, spatial, at);
  Pool pool{for_each_dim(op, "size", o.size, spatial, at, 1), for_each_dim(op, "stride", o.stride, spatial, at),
            for_each_dim(op, "padding", o.padding, spatial, at),
            for_each_dim(op, "dilation", o.dilation, spatial, at, 1)};
  for (std::size_t i = 0; i < pool.size.size(); ++i) {
    if (pool.stride[i] == 0) pool.stride[i] = pool.size[i];
    if (2 * pool.padding[i] > pool.size[i])
      throw UserError(Location(at), op, fmt::format("padding is {} for windows of {}", pool.padding[i], pool.size[i]),
                      "conv_options", "give at most half the size of a window");
  }
  return pool;
}

/// Adds `count` elements of one value before and after a dim.
Tensor surrounded(const Tensor& x, int dim, std::int64_t count, double value) {
  if (count == 0) return x;
  Shape shape = x.shape();
  shape.set(dim, Dim(count));
  const Tensor border = Tensor(ir::full(x.builder(), shape, value, x.dtype()));
  return concat({border, x, border}, dim);
}

/// Combines the elements of the windows of one dim: combine(combine(first, second), third), ...
template <class Combine>
Tensor over_windows(const Tensor& x, int dim, std::size_t i, const Pool& pool, const Combine& combine) {
  // A window dim of its own, whose indices are views.
  const Tensor windows = unfold(x, dim, {.size = pool.size[i], .step = pool.stride[i], .dilation = pool.dilation[i]});
  Tensor result = windows.select(-1, 0);
  for (std::int64_t k = 1; k < pool.size[i]; ++k) result = combine(result, windows.select(-1, k));
  return result;
}

/// Windows are separable: the last dim first, so that the first of equal elements in row-major order wins.
Tensor max_pooled(std::string_view op, const Tensor& x, const PoolOptions& options, int spatial, const Where& at) {
  const Composed composed(op, at, {&x});
  const Pool pool = pool_of(op, x, options, spatial, at);
  if (!options.count_padding)
    throw UserError(Location(at), op, "max pooling counts no elements", "conv_options",
                    "leave count_padding out; padding is never the maximum");
  const auto later = [](const Tensor& a, const Tensor& b) { return where((b > a) | (b != b), b, a); };
  Tensor result = x;
  for (int i = spatial; i-- > 0;) {
    const auto k = static_cast<std::size_t>(i);
    const Tensor all = surrounded(result, i + 2, pool.padding[k], -std::numeric_limits<double>::infinity());
    result = over_windows(all, i + 2, k, pool, later);
  }
  return result;
}

Tensor window_sums(const Tensor& x, const Pool& pool) {
  Tensor result = x;
  for (int i = static_cast<int>(pool.size.size()); i-- > 0;) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t padding = pool.padding[k];
    const Tensor all = padding == 0 ? result : pad(result, i + 2, padding, padding);
    result = over_windows(all, i + 2, k, pool, [](const Tensor& a, const Tensor& b) { return a + b; });
  }
  return result;
}

Tensor avg_pooled(std::string_view op, const Tensor& x, const PoolOptions& options, int spatial, const Where& at) {
  const Composed composed(op, at, {&x});
  const Pool pool = pool_of(op, x, options, spatial, at);
  if (std::ranges::any_of(pool.dilation, [](std::int64_t dilation) { return dilation != 1; }))
    throw UserError(Location(at), op, "average pooling has no dilation", "conv_options", "leave dilation at 1");
  const Tensor sums = window_sums(x, pool);
  const bool pads = std::ranges::any_of(pool.padding, [](std::int64_t padding) { return padding > 0; });
  if (options.count_padding || !pads) {
    double count = 1;
    for (const std::int64_t size : pool.size) count *= static_cast<double>(size);
    return sums / count;
  }
  Shape one = x.shape();
  one.set(0, Dim(1));
  one.set(1, Dim(1));
  return sums / window_sums(Tensor(ir::full(x.builder(), one, 1, x.dtype())), pool);
}

/// Returns the product of a matrix, row-major [rows, columns], with the elements along a dim of `columns` elements.
Tensor mapped(const Tensor& x, int dim, const std::vector<double>& matrix, std::int64_t rows, std::int64_t columns) {
  const Tensor m = x.graph().literal({rows, columns}, matrix, x.dtype());
  return matmul(x.transpose(dim, -1), m.transpose(0, 1)).transpose(dim, -1);
}

std::int64_t known_size(std::string_view op, const Tensor& x, int dim, const Where& at) {
  if (const auto size = x.size(dim).value()) return *size;
  throw UserError(Location(at), op, fmt::format("dim {} of x, {}, is unknown", dim, x.size(dim).to_string()),
                  "interpolate_size", "give x a known size along each resized dim");
}

Tensor adaptive(std::string_view op, const Tensor& x, const PerDim& size, int spatial, const Where& at) {
  const Composed composed(op, at, {&x});
  const Ints counts = pool_of(op, x, {.size = size}, spatial, at).size;
  Tensor result = x;
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t count = counts[static_cast<std::size_t>(i)];
    const int dim = i + 2;
    if (count == 1) {
      result = result.mean(dim, true);
      continue;
    }
    const std::int64_t columns = known_size(op, result, dim, at);
    std::vector<double> means(static_cast<std::size_t>(count * columns), 0);
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t first = row * columns / count, last = ((row + 1) * columns + count - 1) / count;
      for (std::int64_t c = first; c < last; ++c)
        means[static_cast<std::size_t>(row * columns + c)] = 1 / static_cast<double>(last - first);
    }
    result = mapped(result, dim, means, count, columns);
  }
  return result;
}

/// For each of `count` results: the position in the source, from 0 to n - 1.
double source_position(std::int64_t i, std::int64_t n, std::int64_t count, bool align_corners) {
  const auto size = static_cast<double>(n), results = static_cast<double>(count), at = static_cast<double>(i);
  if (align_corners) return count == 1 ? 0 : at * (size - 1) / (results - 1);
  return std::clamp((at + 0.5) * size / results - 0.5, 0.0, size - 1);
}

Tensor taken(const Tensor& x, int dim, const Ints& positions) {
  std::vector<double> numbers(positions.begin(), positions.end());
  return gather(x, x.graph().literal({static_cast<std::int64_t>(positions.size())}, numbers, i64), dim);
}

Tensor resized_nearest(const Tensor& x, int dim, std::int64_t n, std::int64_t count) {
  if (count % n == 0) return x.repeat_interleave(count / n, dim);
  Ints positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(i * n / count);
  return taken(x, dim, positions);
}

Tensor resized_linear(const Tensor& x, int dim, std::int64_t n, std::int64_t count, bool align_corners) {
  Ints below, above;
  std::vector<double> fractions;
  for (std::int64_t i = 0; i < count; ++i) {
    const double at = source_position(i, n, count, align_corners);
    below.push_back(static_cast<std::int64_t>(std::floor(at)));
    above.push_back(std::min(below.back() + 1, n - 1));
    fractions.push_back(at - std::floor(at));
  }
  Shape along(std::vector<Dim>(static_cast<std::size_t>(x.rank()), Dim(1)));
  along.set(dim, Dim(count));
  const Tensor fraction = x.graph().literal({count}, fractions, x.dtype()).view(along), low = taken(x, dim, below);
  return low + (taken(x, dim, above) - low) * fraction;
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const PoolOptions& options, Where at) {
  return max_pooled("max_pool1d", x, options, 1, at);
}
Tensor max_pool2d(const Tensor& x, const PoolOptions& options, Where at) {
  return max_pooled("max_pool2d", x, options, 2, at);
}
Tensor avg_pool1d(const Tensor& x, const PoolOptions& options, Where at) {
  return avg_pooled("avg_pool1d", x, options, 1, at);
}
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options, Where at) {
  return avg_pooled("avg_pool2d", x, options, 2, at);
}
Tensor adaptive_avg_pool1d(const Tensor& x, const PerDim& size, Where at) {
  return adaptive("adaptive_avg_pool1d", x, size, 1, at);
}
Tensor adaptive_avg_pool2d(const Tensor& x, const PerDim& size, Where at) {
  return adaptive("adaptive_avg_pool2d", x, size, 2, at);
}

Tensor pad(const Tensor& a, DimIndex dim, const PadOptions& o, Where at) {
  const Composed composed("pad", at, {&a});
  if (o.mode == PadMode::zeros) return pad(a, dim, o.low, o.high);
  const Dim size = a.size(dim).unnamed();
  for (const Dim& count : {o.low, o.high})
    if (const auto n = size.value(), k = count.value(); n && k && o.mode != PadMode::replicate)
      if (const std::int64_t most = o.mode == PadMode::reflect ? *n - 1 : *n; *k > most)
        throw UserError(Location(at), "pad",
                        fmt::format("{} elements are added to dim {} of size {}", *k, dim.value, *n), "slice_range",
                        fmt::format("{} of a dim repeats at most {} of its elements",
                                    o.mode == PadMode::reflect ? "a reflection" : "a circle", most));
  std::vector<Tensor> parts;
  const auto add = [&](const Dim& count, const auto& part) {
    if (!count.is(0)) parts.push_back(part());
  };
  const auto edge = [&](const Dim& start, const Dim& count) {
    Shape shape = a.shape();
    shape.set(static_cast<int>(from_front(a, dim)), count);
    return a.slice(dim, start, start + Dim(1)).expand(shape);
  };
  const Dim one(1);
  switch (o.mode) {
    case PadMode::zeros: break;
    case PadMode::reflect:
      add(o.low, [&] { return flip(a.slice(dim, one, o.low + one), dim); });
      parts.push_back(a);
      add(o.high, [&] { return flip(a.slice(dim, size - one - o.high, size - one), dim); });
      break;
    case PadMode::replicate:
      add(o.low, [&] { return edge(0, o.low); });
      parts.push_back(a);
      add(o.high, [&] { return edge(size - one, o.high); });
      break;
    case PadMode::circular:
      add(o.low, [&] { return a.slice(dim, size - o.low, size); });
      parts.push_back(a);
      add(o.high, [&] { return a.slice(dim, Dim(0), o.high); });
      break;
  }
  return parts.size() == 1 ? parts[0] : concat(parts, dim);
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& o, Where at) {
  const Composed composed("interpolate", at, {&x});
  detail::require_spatial_dims("interpolate", x, 1, 3, at);
  const int spatial = x.rank() - 2;
  if (o.align_corners && o.mode == Interpolation::nearest)
    throw UserError(Location(at), "interpolate", "align_corners has no meaning for the nearest element",
                    "conv_options", "leave it out, or set mode to Interpolation::linear");
  const Ints sizes = for_each_dim("interpolate", "size", o.size, spatial, at, 1);
  Tensor result = x;
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t count = sizes[static_cast<std::size_t>(i)], n = known_size("interpolate", x, i + 2, at);
    if (count == n) continue;
    result = o.mode == Interpolation::nearest ? resized_nearest(result, i + 2, n, count)
                                              : resized_linear(result, i + 2, n, count, o.align_corners);
  }
  return result;
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps,
                  Where at) {
  const Composed composed("group_norm", at, {&x, &weight, &bias});
  const auto fail = [&](const std::string& message, std::string_view hint) {
    throw UserError(Location(at), "group_norm", message, "group_norm", hint);
  };
  if (x.rank() < 2) fail(fmt::format("x has {} dims", x.rank()), "give [batch, channels, spatial dims..]");
  if (groups < 1 || !x.size(1).unnamed().divided_by(groups))
    fail(fmt::format("the {} channels do not divide into {} groups", x.size(1).to_string(), groups),
         "give a number of groups that divides the channels");
  Dim each = *x.size(1).unnamed().divided_by(groups);
  Shape channels{x.size(1)};
  for (int d = 2; d < x.rank(); ++d) {
    each = each * x.size(d).unnamed();
    channels.push_back(Dim(1));
  }
  const Tensor normalized = layer_norm(x.reshape({x.size(0), Dim(groups), each}), eps).view(x.shape());
  return normalized * weight.view(channels) + bias.view(channels);
}

}  // namespace lathe
