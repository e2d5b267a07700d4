#include <fmt/core.h>

#include <cmath>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"
#include "models/import/ops/elimination.h"
#include "models/import/ops/signal/fourier.h"
#include "models/import/ops/signal/signal_windows.h"

/// Fourier transforms, windows of signals, and determinants.
namespace lathe::onnx {

namespace {

using importing::FourierScale;
using importing::Signal;
using importing::transformed;
using importing::with_length;

std::int64_t known(const OpCall& call, const Dim& size) {
  if (!size.value())
    call.fail(fmt::format("the length of the signal is the unknown size {}", size.to_string()), "import_size");
  return *size.value();
}

/// x [.., n, .., 1 or 2]: real numbers, or pairs.
Results dft_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 2 || !(x.size(-1).is(1) || x.size(-1).is(2)))
    call.fail(fmt::format("the last dim of the operand {} is not 1 or 2", x.shape().to_string()), "import_operand");
  std::int64_t given = call.version() < 20 ? 1 : -2;
  if (call.has("axis")) given = call.integer("axis");
  if (call.has(2)) given = call.integer(2, "the axis");
  const int axis = call.axis(given, x.rank());
  if (axis == x.rank() - 1) call.fail("the axis is that of the pairs", "import_attribute");
  const bool is_inverse = call.flag("inverse", false), is_onesided = call.flag("onesided", false);
  const std::int64_t size = known(call, x.size(axis));
  std::int64_t length = is_inverse && is_onesided ? 2 * (size - 1) : size;
  if (call.has(1)) length = call.integer(1, "dft_length");
  if (length < 1) call.fail(fmt::format("a transform of the length {}", length), "import_operand");
  const std::int64_t inputs = is_inverse && is_onesided ? length / 2 + 1 : length;
  const int last = x.rank() - 2;  // of each part
  const auto part = [&](int i) { return with_length(x.select(-1, i).transpose(axis, last), size, inputs); };
  const Signal signal{part(0), x.size(-1).is(2) ? part(1) : Tensor()};
  if (is_inverse && is_onesided)
    return {importing::real_inverse(signal, length, FourierScale::length).transpose(axis, last).unsqueeze(-1)};
  const Signal y = transformed(
      signal, is_onesided ? length / 2 + 1 : length,
      {.length = length, .is_inverse = is_inverse, .scale = is_inverse ? FourierScale::length : FourierScale::none});
  return {stack({y.real.transpose(axis, last), y.imaginary.transpose(axis, last)}, -1)};
}

/// The transforms of frames of a signal [B, n, 1 or 2], times a window.
Results stft_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t step = call.integer(1, "frame_step");
  if (x.rank() != 3 || step < 1)
    call.fail("the signal has not 3 dims, or the step is not positive", "import_operand");
  if (!call.has(2) && !call.has(3)) call.fail("neither a window nor frame_length is given", "import_operand");
  const std::int64_t length = call.has(3) ? call.integer(3, "frame_length") : known(call, call.operand(2).shape()[0]);
  const auto part = [&](int i) {
    const Tensor frames = x.select(-1, i).unfold(1, {.size = length, .step = step});
    return call.has(2) ? frames * call.tensor(2) : frames;
  };
  const Signal signal{part(0), x.size(-1).is(2) ? part(1) : Tensor()};
  const bool is_onesided = call.flag("onesided", true);
  const Signal y = transformed(signal, is_onesided ? length / 2 + 1 : length, {.length = length});
  return {stack({y.real, y.imaginary}, -1)};
}

Results window_op(const OpCall& call, const importing::CosineTerms& terms) {
  const std::int64_t size = call.integer(0, "the size");
  const DType dtype = dtype_of(call.integer("output_datatype", 1), call.node().location.place() + ": the result");
  const bool is_periodic = call.flag("periodic", true);
  if (size < (is_periodic ? 1 : 2)) call.fail(fmt::format("a window of {} elements", size), "import_operand");
  return {importing::cosine_window(call.graph(), size, is_periodic, terms).to(dtype)};
}
Results hann_window(const OpCall& call) { return window_op(call, {0.5, 0.5}); }
Results hamming_window(const OpCall& call) { return window_op(call, {25.0 / 46, 21.0 / 46}); }
Results blackman_window(const OpCall& call) { return window_op(call, {0.42, 0.5, 0.08}); }

/// Triangles whose centers are at equal distances on the mel scale: [frequencies, bins].
Results mel_weights(const OpCall& call) {
  const auto number = [&](std::size_t i, std::string_view name) { return call.numbers(i, name).item(); };
  const std::int64_t bins = call.integer(0, "num_mel_bins"), length = call.integer(1, "dft_length");
  const double rate = number(2, "sample_rate"), low = number(3, "lower_edge_hertz"),
               high = number(4, "upper_edge_hertz");
  const DType dtype = dtype_of(call.integer("output_datatype", 1), call.node().location.place() + ": the result");
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const std::int64_t rows = length / 2 + 1;
  if (bins < 1 || length < 1 || bins > most || rows > most / bins || !(rate > 0) || !(low >= 0) || !(high > low))
    call.fail("a size or a frequency is out of range", "import_operand");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low), step = (mel(high) - first) / static_cast<double>(bins + 2);
  const auto frequency = [&](std::int64_t i) {
    const double hertz = 700 * (std::pow(10, (first + static_cast<double>(i) * step) / 2595) - 1);
    return static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  };
  HostTensor weights(dtype, {rows, bins});
  const auto set = [&](std::int64_t row, std::int64_t bin, std::int64_t part, std::int64_t whole) {
    if (row >= rows) call.fail("upper_edge_hertz is above half of the sample rate", "import_operand");
    weights.set(row * bins + bin, static_cast<double>(part) / static_cast<double>(whole));
  };
  for (std::int64_t i = 0; i < bins; ++i) {
    const std::int64_t start = frequency(i), center = frequency(i + 1), end = frequency(i + 2);
    if (start == center) set(center, i, 1, 1);
    for (std::int64_t k = start; start < center && k <= center; ++k) set(k, i, k - start, center - start);
    for (std::int64_t k = center; k < end; ++k) set(k, i, end - k, end - center);
  }
  return {Value::constant(std::move(weights))};
}

Results det_op(const OpCall& call) { return {importing::eliminate(call, call.tensor(0), {}).determinant}; }

}  // namespace

std::span<const OpRecord> signal_ops() {
  static constexpr OpRecord records[] = {
      {"DFT", 17, 19, "axis inverse onesided", dft_op},
      {"DFT", 20, latest, "inverse onesided", dft_op},
      {"STFT", 17, latest, "onesided", stft_op},
      {"HannWindow", 17, latest, "output_datatype periodic", hann_window},
      {"HammingWindow", 17, latest, "output_datatype periodic", hamming_window},
      {"BlackmanWindow", 17, latest, "output_datatype periodic", blackman_window},
      {"MelWeightMatrix", 17, latest, "output_datatype", mel_weights},
      {"Det", 11, latest, "", det_op},
  };
  return records;
}

}  // namespace lathe::onnx
