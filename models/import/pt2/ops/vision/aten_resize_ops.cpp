#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/vision/known_resize.h"
#include "models/import/ops/whole_resize.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// How an op computes the elements of a result.
struct Resampling {
  enum class Kind : std::uint8_t { nearest, nearest_exact, linear, cubic };
  Kind kind = Kind::nearest;
  bool antialias = false;
  bool align_corners = false;

  bool is_nearest() const { return kind == Kind::nearest || kind == Kind::nearest_exact; }
};

/// The new size of a dim, and the factor that positions follow from if it is another one than that of the sizes.
struct NewSize {
  Dim size = 0;
  std::optional<double> factor = {};
};

/// Returns a size times a factor, rounded down if it is known; otherwise the product must be whole.
NewSize scaled_size(const OpCall& call, const Dim& size, double factor) {
  if (size.value()) {
    const double wanted = std::floor(static_cast<double>(*size.value()) * factor);
    if (!(wanted >= 1 && wanted < 0x1p31))
      call.fail(fmt::format("the factor {} does not give a size", factor), "import_size");
    const auto whole = static_cast<std::int64_t>(wanted);
    const bool is_exact = static_cast<double>(*size.value()) * factor == wanted;
    return {whole, is_exact ? std::nullopt : std::optional(factor)};
  }
  if (const auto part = importing::exact_part(call, size, factor)) return {*part};
  if (!(factor >= 1 && factor < 0x1p31) || factor != std::floor(factor))
    call.fail(fmt::format("the factor {} does not give a whole size", factor), "import_size");
  return {size * Dim(static_cast<std::int64_t>(factor))};
}

/// Returns the sizes of the spatial dims after a resize: operand 1, or those that factors give.
std::vector<NewSize> new_sizes(const OpCall& call, const Tensor& x) {
  std::vector<NewSize> sizes;
  const auto size_at = [&](std::size_t i) { return x.size(static_cast<int>(i) + 2).unnamed(); };
  const auto* factors = call.find<std::vector<double>>("scale_factors");
  if (!call.has(1)) {
    if (!factors) call.fail("neither output_size nor scale_factors is given", "import_operand");
    for (std::size_t i = 0; i < factors->size() && static_cast<int>(i) + 2 < x.rank(); ++i)
      sizes.push_back(scaled_size(call, size_at(i), (*factors)[i]));
    return sizes;
  }
  for (const Dim& size : call.dims(1, "output_size")) sizes.push_back({size});
  if (static_cast<int>(sizes.size()) + 2 != x.rank())
    call.fail(fmt::format("{} sizes for an operand with {} dims", sizes.size(), x.rank()), "import_operand");
  // Ops without a list of factors have one argument for each spatial dim, the last one for scales_w.
  constexpr std::array<std::string_view, 3> names{"scales_d", "scales_h", "scales_w"};
  for (std::size_t i = 0; i < sizes.size() && sizes.size() <= names.size(); ++i) {
    const std::string_view name = sizes.size() == 1 ? "scales" : names.at(names.size() - sizes.size() + i);
    if (!call.has(name)) continue;
    const double factor = call.real(name);
    const auto from = size_at(i).value(), to = sizes[i].size.value();
    if (from && to && static_cast<double>(*from) * factor != static_cast<double>(*to)) sizes[i].factor = factor;
  }
  return sizes;
}

/// Resizes a dim of unknown size to a multiple or a part of it.
Tensor stretched(const OpCall& call, const Tensor& x, int axis, const Dim& to, const Resampling& how) {
  const Dim size = x.size(axis).unnamed();
  if (size == to) return x;
  if (size.is(1)) {  // its only element
    Shape shape = x.shape();
    shape.set(axis, to);
    return x.expand(shape);
  }
  constexpr std::string_view hint = "export the model with fixed sizes";
  const std::string change = fmt::format("dim {} of size {} becomes {}", axis, size.to_string(), to.to_string());
  if (how.align_corners) call.fail(change + " with align_corners", "import_size", hint);
  if (how.kind == Resampling::Kind::cubic || how.antialias)
    call.fail(change + " by a cubic or antialiased interpolation", "import_size", hint);
  if (const auto factor = importing::whole_factor(size, to))
    return how.is_nearest() ? importing::repeated(x, axis, *factor) : importing::interpolated(x, axis, *factor);
  if (const auto divisor = importing::whole_factor(to, size)) {
    const std::int64_t at = how.kind == Resampling::Kind::nearest_exact ? *divisor / 2 : 0;
    return how.is_nearest() ? importing::element_of_groups(x, axis, *divisor, at)
                            : importing::centers_of_groups(x, axis, *divisor);
  }
  call.fail(change + ", which is no whole multiple or part", "import_size", hint);
}

/// Takes the element at each position, which PyTorch computes in f32.
Tensor closest(const Tensor& x, int axis, std::int64_t from, std::int64_t to, std::optional<double> factor,
               bool is_exact) {
  const float scale = factor ? static_cast<float>(1 / *factor) : static_cast<float>(from) / static_cast<float>(to);
  Ints positions;
  for (std::int64_t i = 0; i < to; ++i) {
    const float at = (static_cast<float>(i) + (is_exact ? 0.5F : 0.0F)) * scale;
    positions.push_back(std::min(static_cast<std::int64_t>(std::floor(at)), from - 1));
  }
  return gather(x, x.graph().literal({to}, positions, i64), axis);
}

/// Resizes a dim of known size by a matrix.
Tensor by_matrix(const OpCall& call, const Tensor& x, int axis, std::int64_t to, std::optional<double> factor,
                 const Resampling& how) {
  const std::int64_t from = *x.size(axis).value();
  const bool is_cubic = how.kind == Resampling::Kind::cubic;
  importing::ResizeOptions options{is_cubic ? "cubic" : "linear", "half_pixel", ""};
  // The only element of a result with aligned corners is the first one.
  if (how.align_corners) options.coordinates = to == 1 ? "asymmetric" : "align_corners";
  options.antialias = options.excludes_outside = how.antialias;
  options.cubic = how.antialias ? -0.5 : -0.75;
  const double own = static_cast<double>(to) / static_cast<double>(from);
  return importing::resized(
      call, x, options,
      {.axis = axis, .inputs = from, .outputs = to, .scale = how.align_corners ? own : factor.value_or(own)});
}

/// Returns whether the DSL's interpolation has the positions of the op.
bool is_plain(const Tensor& x, const std::vector<NewSize>& sizes, const Resampling& how) {
  if (how.antialias || how.kind == Resampling::Kind::cubic || how.kind == Resampling::Kind::nearest_exact)
    return false;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!sizes[i].size.value() || !x.size(static_cast<int>(i) + 2).value() || sizes[i].factor) return false;
  return true;
}

/// Resizes to a size, or by factors.
Results resized(const OpCall& call, Resampling how) {
  const Tensor x = call.tensor(0);
  how.align_corners = call.flag("align_corners", false);
  if (how.align_corners && how.antialias) call.fail("align_corners with antialias is not supported");
  const std::vector<NewSize> sizes = new_sizes(call, x);
  if (is_plain(x, sizes, how)) {
    InterpolateOptions options{.size = 1,
                               .mode = how.is_nearest() ? Interpolation::nearest : Interpolation::linear,
                               .align_corners = how.align_corners};
    options.size.numbers.clear();
    for (const NewSize& size : sizes) options.size.numbers.push_back(*size.size.value());
    return {interpolate(x, options)};
  }
  Tensor y = x;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const auto from = x.size(axis).value(), to = sizes[i].size.value();
    if (!from || !to)
      y = stretched(call, y, axis, sizes[i].size, how);
    else if (how.is_nearest())
      y = closest(y, axis, *from, *to, sizes[i].factor, how.kind == Resampling::Kind::nearest_exact);
    else if (*from != *to || sizes[i].factor)
      y = by_matrix(call, y, axis, *to, sizes[i].factor, how);
  }
  return {y};
}

template <Resampling::Kind kind, bool antialias = false>
Results resize(const OpCall& call) {
  return resized(call, {.kind = kind, .antialias = antialias});
}

}  // namespace

std::span<const OpRecord> aten_resize_ops() {
  using enum Resampling::Kind;
  constexpr std::string_view list = "input output_size", one = "self output_size";
  constexpr std::string_view factors = "scale_factors", aligned_factors = "align_corners scale_factors",
                             aligned = "align_corners scales_h scales_w";
  static constexpr OpRecord records[] = {
      aten("upsample_nearest1d.vec", list, factors, resize<nearest>),
      aten("upsample_nearest2d.vec", list, factors, resize<nearest>),
      aten("upsample_nearest3d.vec", list, factors, resize<nearest>),
      aten("upsample_nearest1d", one, "scales", resize<nearest>),
      aten("upsample_nearest2d", one, "scales_h scales_w", resize<nearest>),
      aten("_upsample_nearest_exact1d.vec", list, factors, resize<nearest_exact>),
      aten("_upsample_nearest_exact2d.vec", list, factors, resize<nearest_exact>),
      aten("_upsample_nearest_exact3d.vec", list, factors, resize<nearest_exact>),
      aten("_upsample_nearest_exact1d", one, "scales", resize<nearest_exact>),
      aten("_upsample_nearest_exact2d", one, "scales_h scales_w", resize<nearest_exact>),
      aten("upsample_linear1d.vec", list, aligned_factors, resize<linear>),
      aten("upsample_bilinear2d.vec", list, aligned_factors, resize<linear>),
      aten("upsample_trilinear3d.vec", list, aligned_factors, resize<linear>),
      aten("upsample_linear1d", one, "align_corners scales", resize<linear>),
      aten("upsample_bilinear2d", one, aligned, resize<linear>),
      aten("_upsample_bilinear2d_aa.vec", list, aligned_factors, resize<linear, true>),
      aten("_upsample_bilinear2d_aa", one, aligned, resize<linear, true>),
      aten("upsample_bicubic2d.vec", list, aligned_factors, resize<cubic>),
      aten("upsample_bicubic2d", one, aligned, resize<cubic>),
      aten("_upsample_bicubic2d_aa.vec", list, aligned_factors, resize<cubic, true>),
      aten("_upsample_bicubic2d_aa", one, aligned, resize<cubic, true>),
  };
  return records;
}

}  // namespace lathe::pt2
