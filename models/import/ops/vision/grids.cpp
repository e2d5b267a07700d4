#include "models/import/ops/vision/grids.h"

#include <fmt/core.h>

#include "models/import/ops/vision/sampling.h"

namespace lathe::importing {

namespace {

/// One spatial dim: its size as a float tensor, and what its ends are.
struct Extent {
  Tensor size;
  bool aligns_corners;
  Outside outside;

  /// Changes a position outside of the dim.
  Tensor inside(const Tensor& at) const {
    if (outside == Outside::zeros) return at;
    if (outside == Outside::border) return minimum(maximum(at, 0.0), size - 1.0);
    // Reflects at the ends, which are the first and last elements or half an element outside of them.
    const double low = aligns_corners ? 0 : -0.5;
    const Tensor range = aligns_corners ? size - 1.0 : size;
    const Tensor safe = maximum(range, 1.0), distance = abs(at - low);  // a dim of one element has a range of 0
    const Tensor turns = (distance / safe).floor(), rest = distance - turns * safe;
    const Tensor is_odd = turns - (turns * 0.5).floor() * 2.0 > 0.5;
    return where(range == 0.0, 0.0 * at, where(is_odd, safe - rest, rest) + low);
  }
  /// Moves a position inside, and then to the closest element.
  Tensor closest(const Tensor& at) const {
    const Tensor moved = inside(at);
    return (outside == Outside::zeros ? moved : minimum(maximum(moved, 0.0), size - 1.0)).round();
  }
  Neighbours inside(Neighbours along) const {
    for (Tensor& at : along.positions) at = inside(at);
    return along;
  }
};

/// Returns the elements around positions along a dim, moved inside.
Neighbours neighbours_of(const Extent& extent, GridMode mode, const Tensor& position) {
  const auto one = [&](const Tensor& at) {
    return Neighbours{{at}, {at.graph().constant(1, at.dtype()).expand(at.shape())}};
  };
  switch (mode) {
    case GridMode::linear: return extent.inside(linear_neighbours(extent.inside(position)));
    // A cubic interpolation keeps positions outside of the image and moves the elements it reads inside.
    case GridMode::cubic: return extent.inside(cubic_neighbours(position));
    case GridMode::round_first: return one(extent.inside(extent.inside(position.round())));
    case GridMode::round_last: break;
  }
  return one(extent.closest(position));
}

}  // namespace

Tensor sampled(const OpCall& call, const Tensor& x, const Tensor& grid, const GridOptions& options) {
  const int dims = x.rank() - 2;
  if (dims < 1 || grid.rank() != x.rank() || !grid.size(-1).is(dims))
    call.fail(fmt::format("a grid {} for an operand {}", grid.shape().to_string(), x.shape().to_string()),
              "import_operand");
  if (!is_float(x.dtype())) call.fail(fmt::format("samples of {} are not supported", name(x.dtype())));
  const Tensor points = grid.to(at_least_f32(grid.dtype())).flatten(1, dims);  // [N, P, dims]
  std::vector<Neighbours> neighbours;
  for (int i = 0; i < dims; ++i) {
    const Extent extent{call.graph().dim_value(x.size(i + 2)).to(points.dtype()), options.aligns_corners,
                        options.outside};
    const Tensor at = points.select(2, dims - 1 - i);
    const Tensor position =
        options.aligns_corners ? (at + 1.0) * 0.5 * (extent.size - 1.0) : ((at + 1.0) * extent.size - 1.0) * 0.5;
    neighbours.push_back(neighbours_of(extent, options.mode, position));
  }
  Shape shape{x.size(0), x.size(1)};
  for (int i = 1; i <= dims; ++i) shape.push_back(grid.size(i));
  return interpolated(x, neighbours).reshape(shape);
}

Tensor affine_grid(const OpCall& call, const Tensor& theta, const std::vector<Dim>& size, bool aligns_corners,
                   double single) {
  const int dims = static_cast<int>(size.size()) - 2;
  if (dims < 1 || theta.rank() != 3 || !theta.size(1).is(dims) || !theta.size(2).is(dims + 1))
    call.fail(fmt::format("a map {} for {} dims", theta.shape().to_string(), dims), "import_operand");
  Shape shape;
  for (int i = 0; i < dims; ++i) shape.push_back(size[static_cast<std::size_t>(i) + 2]);
  std::vector<Tensor> coordinates;  // the last dim first
  for (int i = dims - 1; i >= 0; --i) {
    const Tensor count = call.graph().dim_value(shape[i]).to(theta.dtype());
    const Tensor at = call.graph().arange(shape[i], i64).to(theta.dtype());
    const Tensor aligned = where(count == 1.0, single, at * 2.0 / maximum(count - 1.0, 1.0) - 1.0);
    const Tensor scaled = aligns_corners ? aligned : (at * 2.0 + 1.0) / count - 1.0;
    coordinates.push_back(along_axis(scaled, i, dims).expand(shape));
  }
  coordinates.push_back(call.graph().ones(shape, theta.dtype()));
  const Dim points = shape.numel();
  const Tensor all = stack(coordinates, 0).reshape({dims + 1, points});
  Shape result{theta.size(0)};
  for (int i = 0; i < dims; ++i) result.push_back(shape[i]);
  result.push_back(dims);
  return matmul(theta, all).transpose(1, 2).reshape(result);
}

}  // namespace lathe::importing
