#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/sizes/window_counts.h"
#include "models/import/ops/whole_resize.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

std::int64_t at(const OpCall& call, const PerDim& numbers, int i) {
  const std::size_t k = numbers.numbers.size() == 1 ? 0 : static_cast<std::size_t>(i);
  if (k >= numbers.numbers.size()) call.fail("an argument has too few numbers", "import_attribute");
  return numbers.numbers[k];
}

/// A rounded up number of windows has a last window that ends after the operand, which is padded for it. A mean
/// counts the elements before the end of its own padding, so that it needs a number that is not rounded.
Tensor padded_for_ceil(const OpCall& call, Tensor x, const PoolOptions& options, int spatial, bool is_max) {
  if (!call.flag("ceil_mode", false)) return x;
  for (int i = 0; i < spatial; ++i) {
    const int axis = x.rank() - spatial + i;
    const std::int64_t size = at(call, options.size, i), given = at(call, options.stride, i);
    const std::int64_t padding = at(call, options.padding, i), step = given == 0 ? size : given;
    if (size < 1 || step < 1) call.fail("a window or a stride of 0 or less", "import_attribute");
    const std::int64_t excess = importing::ceil_excess(x.size(axis).unnamed() + Dim(2 * padding), padding,
                                                       at(call, options.dilation, i) * (size - 1) + 1, step);
    if (excess == 0) continue;
    if (!is_max) call.fail("the argument ceil_mode is true, and the windows do not cover the operand");
    x = padded(x, axis, 0, excess, -std::numeric_limits<double>::infinity());
  }
  return x;
}

PoolOptions pool_options(const OpCall& call) {
  return {.size = per_dim_argument(call, "kernel_size", 1),
          .stride = per_dim_argument(call, "stride", 0),
          .padding = per_dim_argument(call, "padding", 0),
          .dilation = per_dim_argument(call, "dilation", 1),
          .count_padding = call.flag("count_include_pad", true)};
}

using Pool = Tensor (*)(const Tensor&, const PoolOptions&, Where);

/// An operand without the batch dim is one element of a batch.
Results pooled(const OpCall& call, Pool pool, int spatial, bool is_max) {
  if (call.has("divisor_override")) call.fail("the argument divisor_override is not supported");
  Tensor x = call.tensor(0);
  const PoolOptions options = pool_options(call);
  const bool is_stride_given = std::ranges::any_of(options.stride.numbers, [](std::int64_t n) { return n != 0; });
  require_multiples(call, x, spatial, is_stride_given ? options.stride : options.size);
  x = padded_for_ceil(call, x, options, spatial, is_max);
  const bool has_batch = x.rank() == spatial + 2;
  const Tensor y = pool(has_batch ? x : x.unsqueeze(0), options, Where::current());
  return {has_batch ? y : y.squeeze(0)};
}
Results max_pool1d_op(const OpCall& call) { return pooled(call, max_pool1d, 1, true); }
Results max_pool2d_op(const OpCall& call) { return pooled(call, max_pool2d, 2, true); }
Results avg_pool1d_op(const OpCall& call) { return pooled(call, avg_pool1d, 1, false); }
Results avg_pool2d_op(const OpCall& call) { return pooled(call, avg_pool2d, 2, false); }

Results adaptive_pool1d(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const PerDim size = per_dim_argument(call, "output_size", 1);
  return {x.rank() == 3 ? adaptive_avg_pool1d(x, size) : adaptive_avg_pool1d(x.unsqueeze(0), size).squeeze(0)};
}
Results adaptive_pool2d(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const PerDim size = per_dim_argument(call, "output_size", 1);
  return {x.rank() == 4 ? adaptive_avg_pool2d(x, size) : adaptive_avg_pool2d(x.unsqueeze(0), size).squeeze(0)};
}

/// Returns a size times a factor, which must be whole.
Dim resized_size(const OpCall& call, const Dim& size, double factor) {
  if (const auto divisor = importing::exact_divisor(factor); divisor && !size.value()) {
    if (const std::optional<Dim> quotient = size.divided_by(*divisor)) return *quotient;
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {}", size.to_string(), *divisor),
                   importing::needed_multiple(size, *divisor));
  }
  const double wanted = size.value() ? static_cast<double>(*size.value()) * factor : factor;
  if (!(wanted >= 1 && wanted < 0x1p31) || wanted != std::floor(wanted))
    call.fail(fmt::format("the factor {} does not give a whole size", factor), "import_size");
  return size.value() ? Dim(static_cast<std::int64_t>(wanted)) : size * Dim(static_cast<std::int64_t>(wanted));
}

/// Returns the sizes of the spatial dims after a resize: operand 1, or those that factors give.
std::vector<Dim> resized_sizes(const OpCall& call, const Tensor& x) {
  if (call.has(1)) return call.dims(1, "output_size");
  const auto* factors = call.find<std::vector<double>>("scale_factors");
  if (!factors) call.fail("neither output_size nor scale_factors is given", "import_operand");
  std::vector<Dim> sizes;
  for (std::size_t i = 0; i < factors->size(); ++i)
    sizes.push_back(resized_size(call, x.size(static_cast<int>(i) + 2).unnamed(), (*factors)[i]));
  return sizes;
}

/// Resizes a dim of unknown size to a multiple or a part of it.
Tensor stretched(const OpCall& call, const Tensor& x, int axis, const Dim& to, const InterpolateOptions& options) {
  const Dim size = x.size(axis).unnamed();
  if (size == to) return x;
  if (size.is(1)) {  // its only element
    Shape shape = x.shape();
    shape.set(axis, to);
    return x.expand(shape);
  }
  const bool is_nearest = options.mode == Interpolation::nearest;
  if (options.align_corners)
    call.fail(fmt::format("dim {} of size {} becomes {} with align_corners", axis, size.to_string(), to.to_string()),
              "import_size", "export the model with fixed sizes");
  if (const auto factor = importing::whole_factor(size, to))
    return is_nearest ? importing::repeated(x, axis, *factor) : importing::interpolated(x, axis, *factor);
  if (const auto divisor = importing::whole_factor(to, size))
    return is_nearest ? importing::element_of_groups(x, axis, *divisor, 0)
                      : importing::centers_of_groups(x, axis, *divisor);
  call.fail(fmt::format("dim {} of size {} becomes {}, which is no whole multiple or part", axis, size.to_string(),
                        to.to_string()),
            "import_size", "export the model with fixed sizes");
}

/// Resizes to a size, or by factors that give whole sizes.
Results resized(const OpCall& call, Interpolation mode) {
  const Tensor x = call.tensor(0);
  InterpolateOptions options{.size = 1, .mode = mode, .align_corners = call.flag("align_corners", false)};
  call.ignore({"scales_h", "scales_w", "scale_factors"});  // those that the size follows from
  const std::vector<Dim> sizes = resized_sizes(call, x);
  options.size.numbers.clear();
  for (std::size_t i = 0; i < sizes.size() && static_cast<int>(i) + 2 < x.rank(); ++i) {
    if (sizes[i].value() && x.size(static_cast<int>(i) + 2).value()) {
      options.size.numbers.push_back(*sizes[i].value());
      continue;
    }
    Tensor y = x;
    for (std::size_t k = 0; k < sizes.size(); ++k) y = stretched(call, y, static_cast<int>(k) + 2, sizes[k], options);
    return {y};
  }
  return {interpolate(x, options)};
}
Results resize_nearest(const OpCall& call) { return resized(call, Interpolation::nearest); }
Results resize_linear(const OpCall& call) { return resized(call, Interpolation::linear); }

}  // namespace

std::span<const OpRecord> aten_pool_ops() {
  constexpr std::string_view of_max = "kernel_size stride padding dilation ceil_mode",
                             of_mean = "kernel_size stride padding ceil_mode count_include_pad divisor_override";
  static constexpr OpRecord records[] = {
      aten("max_pool1d", "self", of_max, max_pool1d_op),
      aten("max_pool2d", "self", of_max, max_pool2d_op),
      aten("max_pool2d_with_indices", "self", of_max, max_pool2d_op),
      aten("avg_pool1d", "self", "kernel_size stride padding ceil_mode count_include_pad", avg_pool1d_op),
      aten("avg_pool2d", "self", of_mean, avg_pool2d_op),
      aten("adaptive_avg_pool1d", "self", "output_size", adaptive_pool1d),
      aten("adaptive_avg_pool2d", "self", "output_size", adaptive_pool2d),
      aten("_adaptive_avg_pool2d", "self", "output_size", adaptive_pool2d),
      aten("upsample_nearest1d.vec", "input output_size", "scale_factors", resize_nearest),
      aten("upsample_nearest2d.vec", "input output_size", "scale_factors", resize_nearest),
      aten("upsample_nearest2d", "self output_size", "scales_h scales_w", resize_nearest),
      aten("upsample_bilinear2d.vec", "input output_size", "align_corners scale_factors", resize_linear),
      aten("upsample_bilinear2d", "self output_size", "align_corners scales_h scales_w", resize_linear),
  };
  return records;
}

}  // namespace lathe::pt2
