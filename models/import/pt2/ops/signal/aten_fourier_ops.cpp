#include <fmt/core.h>

#include <array>

#include "frontend/ops/derived_ops.h"
#include "models/import/ops/sizes/window_counts.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/signal/complex_signals.h"

/// Fourier transforms.
namespace lathe::pt2 {

namespace {

using importing::FourierScale;
using importing::Signal;

/// The division that the argument `norm` asks for in this direction, or the one that a core op names by number.
FourierScale scale_of(const OpCall& call, bool is_inverse) {
  if (call.has("normalization")) {
    constexpr std::array scales{FourierScale::none, FourierScale::root, FourierScale::length};
    const std::int64_t number = call.integer("normalization");
    if (number < 0 || number >= std::ssize(scales))
      call.fail(fmt::format("the argument normalization is {}, not 0 to 2", number), "import_attribute");
    return scales.at(static_cast<std::size_t>(number));
  }
  const std::string norm = call.text("norm", "backward");
  if (norm == "ortho") return FourierScale::root;
  if (norm != "backward" && norm != "forward")
    call.fail(fmt::format("the argument norm is '{}'", norm), "import_attribute");
  return (norm == "forward") != is_inverse ? FourierScale::length : FourierScale::none;
}

/// Cuts the last dim to a length, or adds zeros. A size that is not known must be the length.
Signal with_length(const OpCall& call, const Signal& x, const Dim& length) {
  const Dim size = x.real.size(-1).unnamed();
  if (size == length) return x;
  if (!size.value() || !length.value())
    call.fail(fmt::format("a transform of the length {} of {} elements", length.to_string(), size.to_string()),
              "import_size", "export the model with fixed sizes");
  return each_part(x,
                   [&](const Tensor& part) { return importing::with_length(part, *size.value(), *length.value()); });
}

/// The number of elements of a transform of real numbers.
Dim half_of(const OpCall& call, const Dim& length) {
  if (length.value()) return *length.value() / 2 + 1;
  const std::optional<Dim> half = length.divided_by(2);
  if (!half)
    call.fail_size(fmt::format("the length {} is not known to be even", length.to_string()),
                   importing::needed_multiple(length, 2));
  return *half + Dim(1);
}

/// The axes of a transform, with a length for each: that of the operand unless it is given.
struct Lines {
  Ints axes;
  std::vector<std::optional<Dim>> lengths;
};

/// Of an op over one axis: the arguments n and dim.
Lines one_line(const OpCall& call) {
  Lines lines{{axis_argument(call, call.operand(0).rank(), std::int64_t{-1})}, {std::nullopt}};
  if (call.has(1)) lines.lengths[0] = call.dims(1, "n").at(0);
  return lines;
}

/// Of an op over several axes: the arguments s and dim. Without `dim`, the last axes that s has lengths for, or all.
Lines all_lines(const OpCall& call, const Ints& fallback) {
  const int rank = call.operand(0).rank();
  const std::vector<Dim> lengths = call.has(1) ? call.dims(1, "s") : std::vector<Dim>();
  Lines lines;
  if (call.has("dim") || lengths.empty()) {
    if (!call.has("dim") && !fallback.empty())
      lines.axes = axes_from_front(call, fallback, rank);
    else
      lines.axes = axes_argument(call, "dim", rank);
  } else {
    for (std::size_t i = lengths.size(); i > 0; --i)
      lines.axes.push_back(call.axis(-static_cast<std::int64_t>(i), rank));
  }
  lines.lengths.resize(lines.axes.size());
  if (!lengths.empty() && lengths.size() != lines.axes.size())
    call.fail("s and dim differ in number", "import_attribute");
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (!lengths[i].is(-1)) lines.lengths[i] = lengths[i];
  return lines;
}
Lines two_lines(const OpCall& call) { return all_lines(call, {-2, -1}); }
Lines lines_of_all(const OpCall& call) { return all_lines(call, {}); }

/// Transforms along an axis.
Signal along(const OpCall& call, const Signal& x, const Lines& lines, std::size_t i, bool is_inverse, bool halves) {
  const auto axis = static_cast<int>(lines.axes[i]);
  const Dim length = lines.lengths[i].value_or(x.real.size(axis).unnamed());
  const Signal line = with_length(call, with_axis_last(x, axis), length);
  const Signal y =
      importing::transformed(line, halves ? half_of(call, length) : length,
                             {.length = length, .is_inverse = is_inverse, .scale = scale_of(call, is_inverse)});
  return with_axis_last(y, axis);
}

/// Of a core op: the argument dim. The last line of a transform to real numbers has a length of its own.
Lines core_lines(const OpCall& call) {
  Lines lines;
  lines.axes = axes_from_front(call, call.integers("dim"), call.operand(0).rank());
  if (lines.axes.empty()) call.fail("the argument dim is empty", "import_attribute");
  lines.lengths.resize(lines.axes.size());
  if (call.has(1)) lines.lengths.back() = call.dims(1, "last_dim_size").at(0);
  return lines;
}

using FindLines = Lines (*)(const OpCall& call);

/// Transforms of complex numbers along all lines.
template <FindLines find, bool is_inverse>
Results complex_transform(const OpCall& call) {
  const Lines lines = find(call);
  Signal x = signal_of(call.tensor(0));
  for (std::size_t i = lines.axes.size(); i-- > 0;) x = along(call, x, lines, i, is_inverse, false);
  return {complex_of(x)};
}

Results core_complex_transform(const OpCall& call) {
  return call.flag("forward", true) ? complex_transform<core_lines, false>(call)
                                    : complex_transform<core_lines, true>(call);
}

/// Half of the transform of real numbers along the last line; the other half follows from its symmetry.
template <FindLines find>
Results real_transform(const OpCall& call) {
  if (is_complex(call.dtype(0))) call.fail("the operand is complex", "import_dtype");
  const Lines lines = find(call);
  Signal x = signal_of(call.tensor(0));
  for (std::size_t i = lines.axes.size(); i-- > 0;) x = along(call, x, lines, i, false, i + 1 == lines.axes.size());
  return {complex_of(x)};
}

Results core_real_transform(const OpCall& call) {
  return call.flag("onesided", true) ? real_transform<core_lines>(call) : complex_transform<core_lines, false>(call);
}

/// The real numbers that such a half is the transform of.
template <FindLines find>
Results real_signal(const OpCall& call) {
  const Lines lines = find(call);
  Signal x = signal_of(call.tensor(0));
  for (std::size_t i = 0; i + 1 < lines.axes.size(); ++i) x = along(call, x, lines, i, true, false);
  const auto axis = static_cast<int>(lines.axes.back());
  const Dim length = lines.lengths.back().value_or((x.real.size(axis).unnamed() - Dim(1)) * Dim(2));
  const Signal line = with_length(call, with_axis_last(x, axis), half_of(call, length));
  return {importing::real_inverse(line, length, scale_of(call, true)).transpose(axis, -1)};
}

/// Moves the frequency 0 to the middle of each line, or back.
template <bool is_inverse>
Results shifted_frequencies(const OpCall& call) {
  Signal x = signal_of(call.tensor(0));
  for (const std::int64_t axis : axes_argument(call, "dim", x.real.rank())) {
    const Dim size = x.real.size(axis).unnamed(), half = half_of(call, is_inverse ? size + Dim(1) : size) - Dim(1);
    x = each_part(x, [&](const Tensor& part) { return part.roll(half, axis); });
  }
  return {x.imaginary.is_empty() ? x.real.to(call.dtype(0)) : complex_of(x)};
}

/// The frequencies of a transform in the order of its elements, or of that of real numbers.
template <bool is_real>
Results frequencies(const OpCall& call) {
  const std::int64_t n = call.integer(0, "n");
  if (n < 1) call.fail(fmt::format("a transform of {} elements", n), "import_operand");
  const double step = static_cast<double>(n) * real_argument(call, "d", 1);
  const Tensor numbers = call.graph().arange(is_real ? n / 2 + 1 : n, i64);
  const Tensor ordered = is_real ? numbers : where(numbers < (n + 1) / 2, numbers, numbers - n);
  return {(ordered.to(f64) / step).to(dtype_argument(call, f32))};
}

}  // namespace

std::span<const OpRecord> aten_fourier_ops() {
  static constexpr OpRecord records[] = {
      aten("_fft_c2c", "self", "dim normalization forward", core_complex_transform),
      aten("_fft_r2c", "self", "dim normalization onesided", core_real_transform),
      aten("_fft_c2r", "self last_dim_size", "dim normalization", real_signal<core_lines>),
      aten("fft_fft", "self n", "dim norm", complex_transform<one_line, false>),
      aten("fft_ifft", "self n", "dim norm", complex_transform<one_line, true>),
      aten("fft_fft2", "self s", "dim norm", complex_transform<two_lines, false>),
      aten("fft_ifft2", "self s", "dim norm", complex_transform<two_lines, true>),
      aten("fft_fftn", "self s", "dim norm", complex_transform<lines_of_all, false>),
      aten("fft_ifftn", "self s", "dim norm", complex_transform<lines_of_all, true>),
      aten("fft_rfft", "self n", "dim norm", real_transform<one_line>),
      aten("fft_rfft2", "self s", "dim norm", real_transform<two_lines>),
      aten("fft_rfftn", "self s", "dim norm", real_transform<lines_of_all>),
      aten("fft_irfft", "self n", "dim norm", real_signal<one_line>),
      aten("fft_irfft2", "self s", "dim norm", real_signal<two_lines>),
      aten("fft_irfftn", "self s", "dim norm", real_signal<lines_of_all>),
      aten("fft_fftshift", "self", "dim", shifted_frequencies<false>),
      aten("fft_ifftshift", "self", "dim", shifted_frequencies<true>),
      aten("fft_fftfreq", "n", "d dtype", frequencies<false>),
      aten("fft_rfftfreq", "n", "d dtype", frequencies<true>),
  };
  return records;
}

}  // namespace lathe::pt2
