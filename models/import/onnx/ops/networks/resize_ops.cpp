#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/sizes/size_checks.h"
#include "models/import/ops/whole_resize.h"

/// Resize is separable: along each axis, the result is a matrix [outputs, inputs] times the elements. The matrix
/// follows from the sizes, which must be known. A dim of unknown size is stretched by a whole factor.
namespace lathe::onnx {

namespace {

using Coefficients = std::vector<double>;

/// One axis of a resize.
struct ResizedAxis {
  int axis = 0;
  std::int64_t inputs = 0, outputs = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
  Dim size = 1;             ///< of the input
  std::int64_t factor = 0;  ///< outputs of each input, for an unknown size
  Dim parts = 0;            ///< outputs of a larger unknown size
  Dim copies = 0;           ///< of the only input, for an unknown number of outputs
};

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  bool antialias = false, excludes_outside = false;
  double cubic = -0.75, extrapolation = 0;
};

/// Position of an output in the input: the first element is at 0. The length of the output is the product of length
/// and scale, which may be fractional, as in the format's tests; ONNX Runtime rounds it for align_corners.
double input_position(const ResizeOptions& o, const ResizedAxis& a, std::int64_t i) {
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
bool add_row(const ResizeOptions& o, const ResizedAxis& a, std::int64_t i, std::span<double> row) {
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

Tensor resized(const OpCall& call, const Tensor& x, const ResizeOptions& o, const ResizedAxis& a) {
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

ResizeOptions resize_options(const OpCall& call) {
  ResizeOptions o{call.text("mode", "nearest"), call.text("coordinate_transformation_mode", "half_pixel"),
                  call.text("nearest_mode", "round_prefer_floor")};
  o.antialias = call.flag("antialias", false);
  o.excludes_outside = call.flag("exclude_outside", false);
  o.cubic = call.real("cubic_coeff_a", -0.75);
  o.extrapolation = call.real("extrapolation_value", 0);
  const auto require = [&](const char* name, const std::string& value,
                           std::initializer_list<std::string_view> known) {
    if (std::ranges::find(known, value) == known.end())
      call.fail(fmt::format("the attribute {} is '{}'", name, value), "import_attribute");
  };
  require("mode", o.mode, {"nearest", "linear", "cubic"});
  require("coordinate_transformation_mode", o.coordinates,
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
           "tf_crop_and_resize"});
  require("nearest_mode", o.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  return o;
}

[[noreturn]] void fail_unknown(const OpCall& call, const ResizedAxis& a, std::string_view result) {
  call.fail(fmt::format("dim {} has the unknown size {} and becomes {}, which is no whole multiple or part", a.axis,
                        a.size.to_string(), result),
            "import_size", "give the resized dims fixed sizes when you export the model");
}

/// Sets the results of axes with unknown sizes. Returns the others, with their sizes.
std::pair<std::vector<ResizedAxis*>, Ints> take_unknown_sizes(const OpCall& call, std::vector<ResizedAxis>& axes) {
  const std::vector<Dim> sizes = call.dims(3, "sizes");
  if (sizes.size() != axes.size()) call.fail("sizes and axes differ in number", "import_operand");
  std::pair<std::vector<ResizedAxis*>, Ints> known;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size.value() && sizes[i].value()) {
      known.first.push_back(&axes[i]);
      known.second.push_back(*sizes[i].value());
    } else if (axes[i].size.is(1)) {
      axes[i].copies = sizes[i];
    } else {
      const std::optional<std::int64_t> factor = importing::whole_factor(axes[i].size, sizes[i]);
      if (!factor && !importing::whole_factor(sizes[i], axes[i].size))
        fail_unknown(call, axes[i], sizes[i].to_string());
      if (factor)
        axes[i].factor = *factor;
      else
        axes[i].parts = sizes[i];
    }
  }
  return known;
}

/// Sets outputs and scales from the operand `sizes`: stretched, or with one scale for all axes.
void take_sizes(const OpCall& call, std::vector<ResizedAxis>& all) {
  const auto [axes, sizes] = take_unknown_sizes(call, all);
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    call.fail(fmt::format("the attribute keep_aspect_ratio_policy is '{}'", policy), "import_attribute");
  if (policy != "stretch" && axes.size() != all.size())
    call.fail(fmt::format("keep_aspect_ratio_policy is '{}', and a size is unknown", policy), "import_size");
  std::optional<double> common;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i]->outputs = sizes[i];
    axes[i]->scale = static_cast<double>(sizes[i]) / static_cast<double>(axes[i]->inputs);
    const double scale = axes[i]->scale;
    common = !common ? scale : policy == "not_larger" ? std::min(*common, scale) : std::max(*common, scale);
  }
  if (policy == "stretch") return;
  for (ResizedAxis* a : axes) {
    a->scale = *common;
    a->outputs = static_cast<std::int64_t>(std::floor(*common * static_cast<double>(a->inputs) + 0.5));
  }
}

void take_scales(const OpCall& call, std::vector<ResizedAxis>& axes) {
  call.ignore({"keep_aspect_ratio_policy"});  // of sizes alone
  const std::vector<double> scales = call.numbers(2, "scales").values();
  if (scales.size() != axes.size()) call.fail("scales and axes differ in number", "import_operand");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0)) call.fail("a scale is not positive", "import_operand");
    axes[i].scale = scales[i];
    if (const auto divisor = importing::exact_divisor(scales[i]); divisor && !axes[i].size.value()) {
      const std::optional<Dim> quotient = axes[i].size.divided_by(*divisor);
      if (!quotient)
        call.fail_size(
            fmt::format("the size {} is not known to be a multiple of {}", axes[i].size.to_string(), *divisor),
            importing::needed_multiple(axes[i].size, *divisor));
      axes[i].parts = *quotient;
      continue;
    }
    if (!axes[i].size.value()) {
      if (scales[i] < 1 || scales[i] > 4096 || scales[i] != std::floor(scales[i]))
        fail_unknown(call, axes[i], fmt::format("{} times as large", scales[i]));
      axes[i].factor = static_cast<std::int64_t>(scales[i]);
      continue;
    }
    axes[i].outputs = static_cast<std::int64_t>(std::floor(static_cast<double>(axes[i].inputs) * scales[i]));
  }
}

std::vector<ResizedAxis> resized_axes(const OpCall& call, const Tensor& x, const ResizeOptions& o) {
  Ints numbers;
  for (int i = 0; i < x.rank(); ++i) numbers.push_back(i);
  numbers = axes_from_front(call, call.integers("axes", numbers), x.rank());
  std::vector<ResizedAxis> axes;
  for (const std::int64_t axis : numbers) {
    const Dim size = x.size(axis).unnamed();
    axes.push_back({.axis = static_cast<int>(axis), .inputs = size.value().value_or(1), .size = size});
  }
  const bool has_sizes = call.has(3);
  if (has_sizes == (call.has(2) && call.operand(2).shape().numel() != Dim(0)))
    call.fail("one of scales and sizes is given", "import_operand");
  if (has_sizes)
    take_sizes(call, axes);
  else
    take_scales(call, axes);
  if (o.coordinates != "tf_crop_and_resize") return axes;
  const std::vector<double> roi = call.numbers(1, "roi").values();
  if (roi.size() != 2 * axes.size()) call.fail("roi has not two numbers for each axis", "import_operand");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].roi_start = roi[i];
    axes[i].roi_end = roi[i + axes.size()];
  }
  return axes;
}

[[noreturn]] void fail_mode(const OpCall& call, const ResizeOptions& o, const ResizedAxis& a) {
  call.fail(fmt::format("dim {} has the unknown size {}, and is resized in the mode {} with {} coordinates", a.axis,
                        a.size.to_string(), o.mode, o.coordinates),
            "import_size", "give the resized dims fixed sizes when you export the model");
}

bool has_centers(const ResizeOptions& o) {
  return o.coordinates == "half_pixel" || o.coordinates == "pytorch_half_pixel" ||
         o.coordinates == "half_pixel_symmetric";
}

/// Resizes a dim of unknown size to a whole part of it.
Tensor shrunk(const OpCall& call, const Tensor& x, const ResizeOptions& o, const ResizedAxis& a) {
  const std::int64_t divisor = *importing::whole_factor(a.parts, a.size);
  const bool is_centered = has_centers(o);
  if (o.antialias || (!is_centered && o.coordinates != "asymmetric")) fail_mode(call, o, a);
  if (o.coordinates == "pytorch_half_pixel")  // the position in a result of one element is 0
    importing::require_at_least(call, 2, a.parts,
                                fmt::format("the resized dim {} must have 2 or more elements", a.axis));
  const bool takes_right = o.nearest == "ceil" || o.nearest == "round_prefer_ceil";
  const std::int64_t center = takes_right ? divisor / 2 : (divisor - 1) / 2;
  if (o.mode == "nearest") return importing::element_of_groups(x, a.axis, divisor, is_centered ? center : 0);
  if (o.mode != "linear") fail_mode(call, o, a);
  return is_centered ? importing::centers_of_groups(x, a.axis, divisor)
                     : importing::element_of_groups(x, a.axis, divisor, 0);
}

/// Resizes a dim of unknown size, or to one.
Tensor stretched(const OpCall& call, const Tensor& x, const ResizeOptions& o, const ResizedAxis& a) {
  if (a.factor == 1) return x;
  if (!a.parts.is(0)) return shrunk(call, x, o, a);
  if (a.factor == 0 && o.coordinates != "tf_crop_and_resize") {
    Shape shape = x.shape();
    shape.set(a.axis, a.copies);
    return x.expand(shape);
  }
  if (o.mode == "nearest" &&
      (has_centers(o) ? o.nearest.starts_with("round") : o.coordinates == "asymmetric" && o.nearest == "floor"))
    return importing::repeated(x, a.axis, a.factor);
  if (o.mode == "linear" && has_centers(o) && !o.excludes_outside)
    return importing::interpolated(x, a.axis, a.factor);
  fail_mode(call, o, a);
}

Results resize_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const ResizeOptions o = resize_options(call);
  if (!is_float(x.dtype()) && o.mode != "nearest") call.fail("integers are resized in the mode nearest only");
  Tensor y = x;
  for (const ResizedAxis& a : resized_axes(call, x, o)) {
    const bool is_whole = a.roi_start == 0 && a.roi_end == 1;
    if (a.factor != 0 || !a.copies.is(0) || !a.parts.is(0))
      y = stretched(call, y, o, a);
    else if (a.scale != 1 || a.inputs != a.outputs || !is_whole)
      y = resized(call, y, o, a);
  }
  return {y};
}

}  // namespace

std::span<const OpRecord> resize_ops() {
  static constexpr OpRecord records[] = {
      {"Resize", 11, 17,
       "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode nearest_mode",
       resize_op},
      {"Resize", 18, latest,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
       "keep_aspect_ratio_policy mode nearest_mode",
       resize_op},
  };
  return records;
}

}  // namespace lathe::onnx
