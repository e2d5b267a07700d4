#include "models/import/ops/vision/known_resize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace lathe::importing {

namespace {

using Coefficients = std::vector<double>;

/// Position of an output in the input: the first element is at 0. The length of the output is the product of length
/// and scale, which may be fractional, as in the format's tests; ONNX Runtime rounds it for align_corners.
double input_position(const ResizeOptions& o, const KnownResize& a, std::int64_t i) {
  const auto x = static_cast<double>(i), inputs = static_cast<double>(a.inputs), outputs = a.scale * inputs;
  if (o.coordinates == "align_corners") return outputs == 1 ? 0 : x * (inputs - 1) / (outputs - 1);
  if (o.coordinates == "asymmetric") return x / a.scale;
  if (o.coordinates == "tf_crop_and_resize") {
    const double length = (a.roi_end - a.roi_start) * (inputs - 1);
    return a.roi_start * (inputs - 1) + (outputs == 1 ? length / 2 : x * length / (outputs - 1));
  }
  if (o.coordinates == "pytorch_half_pixel" && outputs == 1) return -0.5;
  const double half_pixel = (x + 0.5) / a.scale - 0.5;
  if (o.coordinates != "half_pixel_symmetric") return half_pixel;
  return inputs / 2 * (1 - static_cast<double>(a.outputs) / outputs) + half_pixel;
}

/// The weights of the elements around a position, of which `ratio` in (0, 1] is the distance to the middle left one.
Coefficients nearest_coefficients(const std::string& mode, double ratio) {
  if (ratio == 1 || mode == "ceil") return {0, 1};
  if (mode == "floor") return {1, 0};
  const bool takes_left = mode == "round_prefer_floor" ? ratio <= 0.5 : ratio < 0.5;
  return takes_left ? Coefficients{1, 0} : Coefficients{0, 1};
}

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

Coefficients filter_coefficients(const ResizeOptions& o, double scale, double ratio) {
  const bool is_cubic = o.mode == "cubic";
  const double shrink = o.antialias ? std::min(scale, 1.0) : 1, reach = is_cubic ? 2 : 1;
  const auto start = static_cast<std::int64_t>(std::floor(-reach / shrink)) + 1;
  Coefficients weights;
  double sum = 0;
  for (std::int64_t i = start; i < 2 - start; ++i) {
    const double distance = shrink * (static_cast<double>(i) - ratio);
    weights.push_back(is_cubic ? cubic_weight(distance, o.cubic) : std::max(1 - std::abs(distance), 0.0));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// A row of the matrix; its elements are added to `row`. Returns whether the output is outside of the input, where it
/// has the extrapolation value.
bool add_row(const ResizeOptions& o, const KnownResize& a, std::int64_t i, std::span<double> row) {
  const double x = input_position(o, a, i);
  if (o.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.inputs - 1))) return true;
  const double floor = std::floor(x), ratio = x == floor ? 1 : x - floor;
  Coefficients weights =
      o.mode == "nearest" ? nearest_coefficients(o.nearest, ratio) : filter_coefficients(o, a.scale, ratio);
  const std::int64_t first = static_cast<std::int64_t>(std::ceil(x)) - static_cast<std::int64_t>(weights.size()) / 2;
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::int64_t at = first + static_cast<std::int64_t>(k);
    if (o.excludes_outside && (at < 0 || at >= a.inputs)) weights[k] = 0;
    sum += weights[k];
  }
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::int64_t at = std::clamp<std::int64_t>(first + static_cast<std::int64_t>(k), 0, a.inputs - 1);
    row[static_cast<std::size_t>(at)] += o.excludes_outside ? weights[k] / sum : weights[k];
  }
  return false;
}

}  // namespace

Tensor resized(const OpCall& call, const Tensor& x, const ResizeOptions& o, const KnownResize& a) {
  if (a.inputs < 1 || a.outputs < 1 || a.outputs > (std::int64_t{1} << 24) / a.inputs)
    call.fail(fmt::format("resizing from {} to {} elements", a.inputs, a.outputs));
  const auto columns = static_cast<std::size_t>(a.inputs);
  Coefficients matrix(static_cast<std::size_t>(a.outputs) * columns, 0), outside;
  bool extrapolates = false;
  for (std::int64_t i = 0; i < a.outputs; ++i) {
    const std::span<double> row(matrix.data() + static_cast<std::size_t>(i) * columns, columns);
    outside.push_back(add_row(o, a, i, row) ? 1 : 0);
    extrapolates = extrapolates || outside.back() == 1;
  }
  Tensor y;
  if (o.mode == "nearest") {
    Ints positions;
    for (std::int64_t i = 0; i < a.outputs; ++i) {
      const auto row = matrix.begin() + static_cast<std::ptrdiff_t>(i * a.inputs);
      positions.push_back((std::max_element(row, row + a.inputs) - row));
    }
    y = gather(x, call.graph().literal({a.outputs}, positions, i64), a.axis);
  } else {
    const Tensor m = call.graph().literal({a.outputs, a.inputs}, matrix, x.dtype());
    y = matmul(x.transpose(a.axis, -1), m.transpose(0, 1)).transpose(a.axis, -1);
  }
  if (!extrapolates) return y;
  const Tensor is_outside = call.graph().literal({a.outputs}, outside, f32) != 0;
  return where(along_axis(is_outside, a.axis, x.rank()), call.graph().constant(o.extrapolation, x.dtype()), y);
}

}  // namespace lathe::importing
