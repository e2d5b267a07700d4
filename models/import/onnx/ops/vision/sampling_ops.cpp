#include <fmt/core.h>

#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/vision/grids.h"
#include "models/import/ops/vision/sampling.h"

/// Ops that read images at positions of a grid.
namespace lathe::onnx {

namespace {

using importing::Outside;

Outside outside_of(const OpCall& call) {
  const std::string mode = call.text("padding_mode", "zeros");
  if (mode == "zeros") return Outside::zeros;
  if (mode == "border") return Outside::border;
  if (mode == "reflection") return Outside::reflection;
  call.fail(fmt::format("the attribute padding_mode is '{}', not zeros, border or reflection", mode),
            "import_attribute");
}

Results grid_sample(const OpCall& call) {
  const std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear");
  const bool is_linear = mode == "linear" || mode == "bilinear", is_cubic = mode == "cubic" || mode == "bicubic";
  if (!is_linear && !is_cubic && mode != "nearest")
    call.fail(fmt::format("the attribute mode is '{}'", mode), "import_attribute",
              "linear, bilinear, cubic, bicubic and nearest are supported");
  using importing::GridMode;
  return {importing::sampled(call, call.tensor(0), call.tensor(1),
                             {.mode = is_linear  ? GridMode::linear
                                      : is_cubic ? GridMode::cubic
                                                 : GridMode::round_first,
                              .outside = outside_of(call),
                              .aligns_corners = call.flag("align_corners", false)})};
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
  std::vector<importing::Neighbours> neighbours;
  for (int i = 0; i < 2; ++i) {
    const auto d = static_cast<std::size_t>(i);
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    const Tensor taps = graph.arange(conv.taps, i64);
    const Tensor tap =
        (i == 0 ? taps / windows.size[1] : taps % windows.size[1]).to(dtype) * number(windows.dilation[d]);
    const Tensor start =
        graph.arange(moved.size(3 + i), i64).to(dtype) * number(windows.stride[d]) - number(windows.low[d]);
    const Tensor at = moved.select(2, i) + tap.reshape({conv.taps, 1, 1}) + (i == 0 ? start.unsqueeze(1) : start);
    neighbours.push_back(importing::linear_neighbours(at.reshape({images, Dim(conv.taps) * outputs})));
  }
  Tensor elements = importing::interpolated(x.reshape({images, each, x.size(2), x.size(3)}), neighbours);
  if (call.has(4)) elements = elements * call.tensor(4).reshape({images, 1, Dim(conv.taps) * outputs});
  const Dim group_size = conv.channels / conv.groups, rows = weight.size(0) / conv.groups;
  const Tensor columns = elements.reshape({conv.batch, conv.groups, group_size * Dim(conv.taps), outputs});
  const Tensor kernel = weight.reshape({1, conv.groups, rows, group_size * Dim(conv.taps)});
  Tensor y = matmul(kernel, columns).reshape({conv.batch, weight.size(0), conv.height, conv.width});
  return {call.has(3) ? y + along_axis(call.tensor(3), 1, 4) : y};
}

Results affine_grid(const OpCall& call) {
  const Tensor theta = call.tensor(0);
  return {importing::affine_grid(call, theta, call.dims(1, "the size"), call.flag("align_corners", false), -1)};
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
