#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/fourier.h"
#include "models/import/ops/sizes/window_counts.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Fourier transforms.
namespace lathe::pt2 {

namespace {

using importing::FourierScale;
using importing::Signal;

/// The division that the argument `norm` asks for in this direction.
FourierScale scale_of(const OpCall& call, bool is_inverse) {
  const std::string norm = call.text("norm", "backward");
  if (norm == "ortho") return FourierScale::root;
  if (norm != "backward" && norm != "forward")
    call.fail(fmt::format("the argument norm is '{}'", norm), "import_attribute");
  return (norm == "forward") != is_inverse ? FourierScale::length : FourierScale::none;
}

Signal signal_of(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (!is_complex(x.dtype())) return {x.to(float_of(x.dtype())), {}};
  const Tensor parts = view_as_real(x);
  return {parts.select(-1, 0), parts.select(-1, 1)};
}
Tensor joined(const Signal& x) {
  const Tensor imaginary = x.imaginary.is_empty() ? zeros_like(x.real) : x.imaginary;
  return view_as_complex(stack({x.real, imaginary}, -1));
}

Signal each_part(const Signal& x, const auto& function) {
  return {function(x.real), x.imaginary.is_empty() ? Tensor() : function(x.imaginary)};
}

/// Moves an axis to the end, or back.
Signal with_last(const Signal& x, int axis) {
  return each_part(x, [&](const Tensor& part) { return part.transpose(axis, -1); });
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
  const Signal line = with_length(call, with_last(x, axis), length);
  const Signal y =
      importing::transformed(line, halves ? half_of(call, length) : length,
                             {.length = length, .is_inverse = is_inverse, .scale = scale_of(call, is_inverse)});
  return with_last(y, axis);
}

using FindLines = Lines (*)(const OpCall& call);

/// Transforms of complex numbers along all lines.
template <FindLines find, bool is_inverse>
Results complex_transform(const OpCall& call) {
  const Lines lines = find(call);
  Signal x = signal_of(call);
  for (std::size_t i = lines.axes.size(); i-- > 0;) x = along(call, x, lines, i, is_inverse, false);
  return {joined(x)};
}

/// Half of the transform of real numbers along the last line; the other half follows from its symmetry.
template <FindLines find>
Results real_transform(const OpCall& call) {
  if (is_complex(call.dtype(0))) call.fail("the operand is complex", "import_dtype");
  const Lines lines = find(call);
  Signal x = signal_of(call);
  for (std::size_t i = lines.axes.size(); i-- > 0;) x = along(call, x, lines, i, false, i + 1 == lines.axes.size());
  return {joined(x)};
}

/// The real numbers that such a half is the transform of.
template <FindLines find>
Results real_signal(const OpCall& call) {
  const Lines lines = find(call);
  Signal x = signal_of(call);
  for (std::size_t i = 0; i + 1 < lines.axes.size(); ++i) x = along(call, x, lines, i, true, false);
  const auto axis = static_cast<int>(lines.axes.back());
  const Dim length = lines.lengths.back().value_or((x.real.size(axis).unnamed() - Dim(1)) * Dim(2));
  const Signal line = with_length(call, with_last(x, axis), half_of(call, length));
  return {importing::real_inverse(line, length, scale_of(call, true)).transpose(axis, -1)};
}

/// The window [n_fft]: ones without one, and zeros around a shorter one.
Tensor window_of(const OpCall& call, std::int64_t count, DType dtype) {
  const std::int64_t given = call.integer("win_length", count), low = (count - given) / 2;
  if (given < 1 || given > count) call.fail(fmt::format("the argument win_length is {}", given), "import_attribute");
  const Tensor window = call.has(1) ? call.tensor(1).to(dtype) : call.graph().ones({given}, dtype);
  return given == count ? window : pad(window, 0, low, count - given - low);
}

/// The transforms of frames of a signal [n] or [B, n], times a window: [B, frequencies, frames].
Results short_time(const OpCall& call) {
  call.ignore({"align_to_window", "pad_mode"});
  const Tensor given = call.tensor(0);
  const std::int64_t count = call.integer("n_fft"), step = call.integer("hop_length", count / 4);
  if (is_complex(given.dtype()) || given.rank() < 1 || given.rank() > 2)
    call.fail("the signal is complex, or has not 1 or 2 dims");
  if (count < 1 || step < 1) call.fail("n_fft or hop_length is not positive", "import_attribute");
  if (call.flag("align_to_window", false)) call.fail("the argument align_to_window is true");
  Tensor x = given.rank() == 2 ? given : given.unsqueeze(0);
  if (call.flag("center", false)) {
    if (call.text("pad_mode", "reflect") != "reflect") call.fail("a pad_mode other than reflect is not supported");
    x = pad(x, 1, {.low = count / 2, .high = count / 2, .mode = PadMode::reflect});
  }
  importing::require_multiple(call, 1, x.size(1), step);
  const Tensor frames = x.unfold(1, {.size = count, .step = step}) * window_of(call, count, x.dtype());
  const bool is_half = call.flag("onesided", true);
  const Signal y = importing::transformed(
      {frames, {}}, is_half ? count / 2 + 1 : count,
      {.length = count, .scale = call.flag("normalized", false) ? FourierScale::root : FourierScale::none});
  const Signal spectrum = with_last(y, 1);
  const bool is_complex_result = call.flag("return_complex", false);
  const Tensor result = is_complex_result ? joined(spectrum) : stack({spectrum.real, spectrum.imaginary}, -1);
  return {given.rank() == 2 ? result : result.squeeze(0)};
}

}  // namespace

std::span<const OpRecord> aten_fourier_ops() {
  constexpr std::string_view of_stft =
      "n_fft hop_length win_length normalized onesided return_complex align_to_window";
  static constexpr OpRecord records[] = {
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
      aten("stft", "self window", of_stft, short_time),
      aten("stft.center", "self window",
           "n_fft hop_length win_length center pad_mode normalized onesided return_complex align_to_window",
           short_time),
  };
  return records;
}

}  // namespace lathe::pt2
