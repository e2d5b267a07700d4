#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/sizes/size_checks.h"
#include "models/import/ops/vision/known_resize.h"
#include "models/import/ops/whole_resize.h"

/// Resize is separable. A dim of unknown size is stretched by a whole factor.
namespace lathe::onnx {

namespace {

using importing::ResizeOptions;

/// One axis of a resize.
struct ResizedAxis : importing::KnownResize {
  Dim size = 1;             ///< of the input
  std::int64_t factor = 0;  ///< outputs of each input, for an unknown size
  Dim parts = 0;            ///< outputs of a larger unknown size
  Dim copies = 0;           ///< of the only input, for an unknown number of outputs
};

ResizeOptions resize_options(const OpCall& call) {
  const bool is_old = call.version() < 11;  // without these attributes
  ResizeOptions o{call.text("mode", "nearest"),
                  call.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel"),
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

/// The operand of the scales; before opset 11 it is the only one, and before opset 9 an attribute.
std::size_t scales_operand(const OpCall& call) { return call.version() < 11 ? 1 : 2; }

void take_scales(const OpCall& call, std::vector<ResizedAxis>& axes) {
  call.ignore({"keep_aspect_ratio_policy"});  // of sizes alone
  const auto* const given = call.find<std::vector<double>>("scales");
  const std::vector<double> scales = given ? *given : call.numbers(scales_operand(call), "scales").values();
  if (scales.size() != axes.size()) call.fail("scales and axes differ in number", "import_operand");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0)) call.fail("a scale is not positive", "import_operand");
    axes[i].scale = scales[i];
    if (axes[i].size.value()) {
      axes[i].outputs = static_cast<std::int64_t>(std::floor(static_cast<double>(axes[i].inputs) * scales[i]));
      continue;
    }
    if (const auto part = importing::exact_part(call, axes[i].size, scales[i])) {
      axes[i].parts = *part;
      continue;
    }
    if (scales[i] < 1 || scales[i] > 4096 || scales[i] != std::floor(scales[i]))
      fail_unknown(call, axes[i], fmt::format("{} times as large", scales[i]));
    axes[i].factor = static_cast<std::int64_t>(scales[i]);
  }
}

std::vector<ResizedAxis> resized_axes(const OpCall& call, const Tensor& x, const ResizeOptions& o) {
  Ints numbers;
  for (int i = 0; i < x.rank(); ++i) numbers.push_back(i);
  numbers = axes_from_front(call, call.integers("axes", numbers), x.rank());
  std::vector<ResizedAxis> axes;
  for (const std::int64_t axis : numbers) {
    const Dim size = x.size(axis).unnamed();
    axes.emplace_back();
    axes.back().axis = static_cast<int>(axis);
    axes.back().inputs = size.value().value_or(1);
    axes.back().size = size;
  }
  const bool has_sizes = call.has(3);
  const std::size_t scales = scales_operand(call);
  const bool has_scales = call.has("scales") || (call.has(scales) && call.operand(scales).shape().numel() != Dim(0));
  if (has_sizes == has_scales) call.fail("one of scales and sizes is given", "import_operand");
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
  ResizeOptions o = resize_options(call);
  if (!is_float(x.dtype()) && o.mode != "nearest") call.fail("integers are resized in the mode nearest only");
  Tensor y = x;
  for (const ResizedAxis& a : resized_axes(call, x, o)) {
    if (call.version() < 11) o.nearest = a.scale < 1 ? "ceil" : "floor";
    const bool is_whole = a.roi_start == 0 && a.roi_end == 1;
    if (a.factor != 0 || !a.copies.is(0) || !a.parts.is(0))
      y = stretched(call, y, o, a);
    else if (a.scale != 1 || a.inputs != a.outputs || !is_whole)
      y = importing::resized(call, y, o, a);
  }
  return {y};
}

}  // namespace

std::span<const OpRecord> resize_ops() {
  static constexpr OpRecord records[] = {
      {"Upsample", 7, 8, "mode scales", resize_op},
      {"Upsample", 9, 9, "mode", resize_op},
      {"Resize", 10, 10, "mode", resize_op},
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
