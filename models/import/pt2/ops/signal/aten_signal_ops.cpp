#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/signal/signal_windows.h"
#include "models/import/ops/sizes/window_counts.h"
#include "models/import/ops/vision/folded_windows.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/signal/complex_signals.h"

/// Transforms of frames of signals, and windows that frames are multiplied by.
namespace lathe::pt2 {

namespace {

using importing::FourierScale;
using importing::Signal;

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
  if (given.rank() < 1 || given.rank() > 2) call.fail("the signal has not 1 or 2 dims", "import_operand");
  if (count < 1 || step < 1) call.fail("n_fft or hop_length is not positive", "import_attribute");
  if (call.flag("align_to_window", false)) call.fail("the argument align_to_window is true");
  const bool is_centered = call.flag("center", false), is_half = call.flag("onesided", !is_complex(given.dtype()));
  if (is_centered && call.text("pad_mode", "reflect") != "reflect")
    call.fail("a pad_mode other than reflect is not supported");
  const Signal frames = each_part(signal_of(given.rank() == 2 ? given : given.unsqueeze(0)), [&](const Tensor& part) {
    const Tensor x =
        is_centered ? pad(part, 1, {.low = count / 2, .high = count / 2, .mode = PadMode::reflect}) : part;
    importing::require_multiple(call, 1, x.size(1), step);
    return x.unfold(1, {.size = count, .step = step}) * window_of(call, count, x.dtype());
  });
  const Signal y = importing::transformed(
      frames, is_half ? count / 2 + 1 : count,
      {.length = count, .scale = call.flag("normalized", false) ? FourierScale::root : FourierScale::none});
  const Signal spectrum = with_axis_last(y, 1);
  const bool is_complex_result = call.flag("return_complex", false);
  const Tensor result = is_complex_result ? complex_of(spectrum) : stack({spectrum.real, spectrum.imaginary}, -1);
  return {given.rank() == 2 ? result : result.squeeze(0)};
}

/// Adds the elements of frames [B, frames, count], one every `step` elements: [B, step * (frames - 1) + count].
Tensor overlapped(const Tensor& frames, std::int64_t count, std::int64_t step) {
  const std::int64_t parts = (count + step - 1) / step;  // of a frame, of `step` elements each
  const Dim frame_count = frames.size(1).unnamed();
  const Tensor split = pad(frames, 2, 0, parts * step - count).reshape({frames.size(0), frame_count, parts, step});
  const Dim places = frame_count + Dim(parts - 1);
  const Tensor sums = importing::folded(split, 2, 1, {.size = places});  // [B, places, step]
  const Dim size = Dim(step) * (frame_count - Dim(1)) + Dim(count);
  return sums.reshape({frames.size(0), places * Dim(step)}).slice(1, 0, size);
}

/// The frames of a spectrum [B, frequencies, frames] in time: [B, frames, count].
Signal frames_of(const OpCall& call, const Tensor& spectrum, std::int64_t count) {
  const FourierScale scale = call.flag("normalized", false) ? FourierScale::root : FourierScale::length;
  const Signal y = with_axis_last(signal_of(spectrum), 1);
  const bool is_half = call.flag("onesided", spectrum.size(1) != Dim(count));
  if (!spectrum.size(1).is(is_half ? count / 2 + 1 : count))
    call.fail(fmt::format("{} frequencies of {} elements", spectrum.size(1).to_string(), count), "import_operand");
  if (is_half) return {importing::real_inverse(y, count, scale), {}};
  return importing::transformed(y, count, {.length = count, .is_inverse = true, .scale = scale});
}

/// The signal of a spectrum [frequencies, frames] or [B, frequencies, frames]: its frames times the window are added,
/// and divided by the sums of the squares of the window. Where these are 0, which PyTorch refuses, results are NaN.
Results inverse_short_time(const OpCall& call) {
  const Tensor given = call.tensor(0);
  const std::int64_t count = call.integer("n_fft"), step = call.integer("hop_length", count / 4);
  if (!is_complex(given.dtype()) || given.rank() < 2 || given.rank() > 3)
    call.fail("the spectrum is not complex, or has not 2 or 3 dims");
  if (count < 1 || step < 1) call.fail("n_fft or hop_length is not positive", "import_attribute");
  const Signal frames = frames_of(call, given.rank() == 3 ? given : given.unsqueeze(0), count);
  const Tensor window = window_of(call, count, frames.real.dtype());
  const Tensor weights =
      overlapped(window.square().expand(frames.real.select(0, 0).shape()).unsqueeze(0), count, step);
  const Dim start = call.flag("center", true) ? count / 2 : 0, all = weights.size(1).unnamed();
  const Dim length = call.has(2) ? call.dims(2, "length").at(0) : all - Dim(2) * start;
  const Dim missing = start + length - all;  // zeros after the last frame
  if (!missing.value() && missing.equals(0) != Dim::Answer::yes)
    call.fail(fmt::format("the length {} of a signal of {}", length.to_string(), all.to_string()), "import_size");
  const std::int64_t zeros = std::max<std::int64_t>(missing.value().value_or(0), 0);
  const auto kept = [&](const Tensor& sums) { return sums.slice(1, start, start + length - Dim(zeros)); };
  const auto signal = [&](const Tensor& part) {
    const Tensor y = pad(kept(overlapped(part * window, count, step)) / kept(weights), 1, 0, zeros);
    return given.rank() == 3 ? y : y.squeeze(0);
  };
  const bool is_complex_result = call.flag("return_complex", false);
  if (is_complex_result) return {complex_of(each_part(frames, signal))};
  return {signal(frames.real)};
}

/// Returns a window with the size of operand 0; one of 1 element is 1.
Results window_op(const OpCall& call, const auto& make) {
  const std::vector<Dim> sizes = call.dims(0, "window_length");
  const DType dtype = dtype_argument(call, f32);
  const bool is_periodic = call.flag("periodic", true);
  if (sizes.size() != 1) call.fail("window_length is not one number", "import_operand");
  if (sizes[0].is(0) || sizes[0].is(1)) return {call.graph().ones({sizes[0]}, dtype)};
  return {make(sizes[0], is_periodic).to(dtype)};
}
template <double a, double b, double c>
Results cosine_window(const OpCall& call) {
  const double first = real_argument(call, "alpha", a), second = real_argument(call, "beta", b);
  return window_op(call, [&](const Dim& size, bool is_periodic) {
    return importing::cosine_window(call.graph(), size, is_periodic, {first, second, c});
  });
}
Results bartlett_window(const OpCall& call) {
  return window_op(call, [&](const Dim& size, bool is_periodic) {
    return importing::triangle_window(call.graph(), size, is_periodic);
  });
}
Results kaiser_window(const OpCall& call) {
  const double beta = real_argument(call, "beta", 12);
  return window_op(call, [&](const Dim& size, bool is_periodic) {
    return importing::kaiser_window(call.graph(), size, is_periodic, beta);
  });
}

}  // namespace

std::span<const OpRecord> aten_signal_ops() {
  constexpr std::string_view of_stft =
      "n_fft hop_length win_length normalized onesided return_complex align_to_window";
  constexpr Build hann = cosine_window<0.5, 0.5, 0.0>, hamming = cosine_window<0.54, 0.46, 0.0>,
                  blackman = cosine_window<0.42, 0.5, 0.08>;
  static constexpr OpRecord records[] = {
      aten("stft", "self window", of_stft, short_time),
      aten("stft.center", "self window",
           "n_fft hop_length win_length center pad_mode normalized onesided return_complex align_to_window",
           short_time),
      aten("istft", "self window length", "n_fft hop_length win_length center normalized onesided return_complex",
           inverse_short_time),
      aten("hann_window", "window_length", "dtype", hann),
      aten("hann_window.periodic", "window_length", "periodic dtype", hann),
      aten("hamming_window", "window_length", "dtype", hamming),
      aten("hamming_window.periodic", "window_length", "periodic dtype", hamming),
      aten("hamming_window.periodic_alpha", "window_length", "periodic alpha dtype", hamming),
      aten("hamming_window.periodic_alpha_beta", "window_length", "periodic alpha beta dtype", hamming),
      aten("blackman_window", "window_length", "dtype", blackman),
      aten("blackman_window.periodic", "window_length", "periodic dtype", blackman),
      aten("bartlett_window", "window_length", "dtype", bartlett_window),
      aten("bartlett_window.periodic", "window_length", "periodic dtype", bartlett_window),
      aten("kaiser_window", "window_length", "dtype", kaiser_window),
      aten("kaiser_window.periodic", "window_length", "periodic dtype", kaiser_window),
      aten("kaiser_window.beta", "window_length", "periodic beta dtype", kaiser_window),
  };
  return records;
}

}  // namespace lathe::pt2
