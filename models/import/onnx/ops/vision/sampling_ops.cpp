#include <fmt/core.h>

#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/ops/vision/sampling.h"

/// Ops that read images at positions of a grid.
namespace lathe::onnx {

namespace {

/// How positions outside of an image are changed.
enum class Outside : std::uint8_t { zeros, border, reflection };

Outside outside_of(const OpCall& call) {
  const std::string mode = call.text("padding_mode", "zeros");
  if (mode == "zeros") return Outside::zeros;
  if (mode == "border") return Outside::border;
  if (mode == "reflection") return Outside::reflection;
  call.fail(fmt::format("the attribute padding_mode is '{}', not zeros, border or reflection", mode),
            "import_attribute");
}

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
  Neighbours inside(Neighbours along) const {
    for (Tensor& at : along.positions) at = inside(at);
    return along;
  }
};

/// Positions in the grid are from -1 to 1, and name the last spatial dim first.
Results grid_sample(const OpCall& call) {
  const Tensor x = call.tensor(0), grid = call.tensor(1);
  const int dims = x.rank() - 2;
  if (dims < 1 || grid.rank() != x.rank() || !grid.size(-1).is(dims))
    call.fail(fmt::format("a grid {} for an operand {}", grid.shape().to_string(), x.shape().to_string()),
              "import_operand");
  if (!is_float(x.dtype())) call.fail(fmt::format("samples of {} are not supported", name(x.dtype())));
  const bool aligns = call.flag("align_corners", false);
  const Outside outside = outside_of(call);
  const std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear");
  const bool is_linear = mode == "linear" || mode == "bilinear", is_cubic = mode == "cubic" || mode == "bicubic";
  if (!is_linear && !is_cubic && mode != "nearest")
    call.fail(fmt::format("the attribute mode is '{}'", mode), "import_attribute",
              "linear, bilinear, cubic, bicubic and nearest are supported");
  const Tensor points = grid.to(at_least_f32(grid.dtype())).flatten(1, dims);  // [N, P, dims]
  std::vector<Neighbours> neighbours;
  for (int i = 0; i < dims; ++i) {
    const Extent extent{call.graph().dim_value(x.size(i + 2)).to(points.dtype()), aligns, outside};
    const Tensor at = points.select(2, dims - 1 - i);
    Tensor position = aligns ? (at + 1.0) * 0.5 * (extent.size - 1.0) : ((at + 1.0) * extent.size - 1.0) * 0.5;
    if (mode == "nearest") {
      position = extent.inside(extent.inside(position.round()));
      neighbours.push_back({{position}, {call.graph().constant(1, position.dtype()).expand(position.shape())}});
    } else {
      // As in PyTorch, a cubic interpolation keeps positions outside of the image and moves the elements it reads
      // inside.
      neighbours.push_back(
          extent.inside(is_linear ? linear_neighbours(extent.inside(position)) : cubic_neighbours(position)));
    }
  }
  Shape shape{x.size(0), x.size(1)};
  for (int i = 1; i <= dims; ++i) shape.push_back(grid.size(i));
  return {interpolated(x, neighbours).reshape(shape)};
}

/// The numbers of a deformable convolution over 2 dims.
struct Deformed {
  Windows windows;
  Dim batch, channels, height, width;  ///< batch and channels of x, and the sizes of the output
  std::int64_t groups, offset_groups, taps;
};

Deformed deformed_of(const OpCall& call, const Tensor& x, const Tensor& weight, const Tensor& offset) {
  if (x.rank() != 4 || weight.rank() != 4 || offset.rank() != 4)
    call.fail(fmt::format("a deformable convolution over {} dims; 2 are supported", x.rank() - 2));
  Ints kernel;
  for (int i = 2; i < 4; ++i) {
    if (!weight.size(i).value()) call.fail("the weight has unknown sizes", "import_size");
    kernel.push_back(*weight.size(i).value());
  }
  if (call.integers("kernel_shape", kernel) != kernel)
    call.fail("the attribute kernel_shape differs from the shape of the weight", "import_attribute");
  const std::int64_t groups = call.integer("group", 1), offset_groups = call.integer("offset_group", 1);
  if (groups < 1 || offset_groups < 1) call.fail("group or offset_group is not positive", "import_attribute");
  const std::int64_t taps = kernel[0] * kernel[1];
  if (!offset.size(1).is(2 * offset_groups * taps))
    call.fail(fmt::format("{} channels of offsets for {} groups of {} positions", offset.size(1).to_string(),
                          offset_groups, taps),
              "import_operand");
  return {
      windows_of(call, x, kernel), x.size(0), x.size(1), offset.size(2), offset.size(3), groups, offset_groups, taps};
}

/// A convolution that reads each element of its windows at an offset: the elements are interpolated, and their
/// product with the weight is a matmul.
Results deform_conv(const OpCall& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1), offset = call.tensor(2);
  const Deformed conv = deformed_of(call, x, weight, offset);
  const Windows& windows = conv.windows;
  const Dim outputs = conv.height.unnamed() * conv.width.unnamed(), each = conv.channels / conv.offset_groups;
  const Dim images = conv.batch.unnamed() * Dim(conv.offset_groups);
  const Graph& graph = call.graph();
  const DType dtype = at_least_f32(x.dtype());
  // [images, taps, 2, height, width]: the channels of a group of offsets are an image of their own.
  const Tensor moved = offset.to(dtype).reshape({images, conv.taps, 2, conv.height, conv.width});
  std::vector<Neighbours> neighbours;
  for (int i = 0; i < 2; ++i) {
    const auto d = static_cast<std::size_t>(i);
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    const Tensor taps = graph.arange(conv.taps, i64);
    const Tensor tap =
        (i == 0 ? taps / windows.size[1] : taps % windows.size[1]).to(dtype) * number(windows.dilation[d]);
    const Tensor start =
        graph.arange(moved.size(3 + i), i64).to(dtype) * number(windows.stride[d]) - number(windows.low[d]);
    const Tensor at = moved.select(2, i) + tap.reshape({conv.taps, 1, 1}) + (i == 0 ? start.unsqueeze(1) : start);
    neighbours.push_back(linear_neighbours(at.reshape({images, Dim(conv.taps) * outputs})));
  }
  Tensor elements = interpolated(x.reshape({images, each, x.size(2), x.size(3)}), neighbours);
  if (call.has(4)) elements = elements * call.tensor(4).reshape({images, 1, Dim(conv.taps) * outputs});
  const Dim group_size = conv.channels / conv.groups, rows = weight.size(0) / conv.groups;
  const Tensor columns = elements.reshape({conv.batch, conv.groups, group_size * Dim(conv.taps), outputs});
  const Tensor kernel = weight.reshape({1, conv.groups, rows, group_size * Dim(conv.taps)});
  Tensor y = matmul(kernel, columns).reshape({conv.batch, weight.size(0), conv.height, conv.width});
  return {call.has(3) ? y + along_axis(call.tensor(3), 1, 4) : y};
}

/// The grid [N, .., dims] that an affine map theta [N, dims, dims + 1] gives for an image of a size [N, C, ..].
Results affine_grid(const OpCall& call) {
  const Tensor theta = call.tensor(0);
  const std::vector<Dim> size = call.dims(1, "the size");
  const bool aligns = call.flag("align_corners", false);
  const int dims = static_cast<int>(size.size()) - 2;
  if (dims < 1 || theta.rank() != 3 || !theta.size(1).is(dims) || !theta.size(2).is(dims + 1))
    call.fail(fmt::format("a map {} for {} dims", theta.shape().to_string(), dims), "import_operand");
  Shape shape;
  for (int i = 0; i < dims; ++i) shape.push_back(size[static_cast<std::size_t>(i) + 2]);
  std::vector<Tensor> coordinates;  // the last dim first
  for (int i = dims - 1; i >= 0; --i) {
    const Tensor count = call.graph().dim_value(shape[i]).to(theta.dtype());
    const Tensor at = call.graph().arange(shape[i], i64).to(theta.dtype());
    const Tensor scaled = aligns ? at * 2.0 / maximum(count - 1.0, 1.0) - 1.0 : (at * 2.0 + 1.0) / count - 1.0;
    coordinates.push_back(along_axis(scaled, i, dims).expand(shape));
  }
  coordinates.push_back(call.graph().ones(shape, theta.dtype()));
  const Dim points = shape.numel();
  const Tensor all = stack(coordinates, 0).reshape({dims + 1, points});
  Shape result{theta.size(0)};
  for (int i = 0; i < dims; ++i) result.push_back(shape[i]);
  result.push_back(dims);
  return {matmul(theta, all).transpose(1, 2).reshape(result)};
}

}  // namespace

std::span<const OpRecord> sampling_ops() {
  static constexpr OpRecord records[] = {
      {"GridSample", 16, latest, "align_corners mode padding_mode", grid_sample},
      {"DeformConv", 19, latest, "dilations group kernel_shape offset_group pads strides", deform_conv},
      {"AffineGrid", 20, latest, "align_corners", affine_grid},
  };
  return records;
}

}  // namespace lathe::onnx
