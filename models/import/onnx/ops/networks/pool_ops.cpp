#include <algorithm>
#include <limits>

#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

Tensor window_sums(const Tensor& x, const Windows& windows) {
  return over_windows(x, windows, [](const Tensor& a, const Tensor& b) { return a + b; });
}

/// Padding is never the largest element. The first of equal elements gets the gradient.
Results max_pool(const OpCall& call) {
  if (call.integer("storage_order", 0) != 0) call.fail("positions in column-major order are not supported");
  const Tensor given = call.tensor(0), x = is_byte(given.dtype()) ? given.to(i32) : given;
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
  const Number lowest = is_float(x.dtype()) ? Number(-std::numeric_limits<double>::infinity())
                                            : Number(integer_limits(x.dtype()).lowest);
  const auto larger = [](const Tensor& a, const Tensor& b) { return where((b > a) | (b != b), b, a); };
  return {over_windows(padded_for(x, windows, lowest, lowest), windows, larger).to(given.dtype())};
}

/// The mean of each window, with or without its padding. Elements that only ceil_mode adds do not count.
Results average_pool(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
  const Tensor sums = window_sums(padded_for(x, windows, 0, 0), windows);
  const bool counts_padding = call.flag("count_include_pad", false);
  const auto is_zero = [](std::int64_t n) { return n == 0; };
  const bool has_padding = !std::ranges::all_of(windows.low, is_zero) || !std::ranges::all_of(windows.high, is_zero),
             has_excess = !std::ranges::all_of(windows.excess, is_zero);
  if (!has_excess && (counts_padding || !has_padding)) {
    double count = 1;
    for (const std::int64_t size : windows.size) count *= static_cast<double>(size);
    return {sums / count};
  }
  Shape one = x.shape();
  one.set(0, 1);
  one.set(1, 1);
  const Tensor ones = call.graph().ones(one, x.dtype());
  return {sums / window_sums(padded_for(ones, windows, counts_padding ? 1 : 0, 0), windows)};
}

Results lp_pool(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const auto p = static_cast<double>(call.integer("p", 2));
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
  return {window_sums(padded_for(abs(x).pow(p), windows, 0, 0), windows).pow(1 / p)};
}

Axes spatial_axes(const Tensor& x) {
  Ints axes;
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes_of(axes);
}
Results require_spatial(const OpCall& call, const auto& reduce) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 3) call.fail("the operand has no spatial dims", "import_operand");
  return {reduce(x, spatial_axes(x))};
}
Results global_average(const OpCall& call) {
  return require_spatial(call, [](const Tensor& x, const Axes& axes) { return x.mean(axes, true); });
}
Results global_max(const OpCall& call) {
  return require_spatial(call, [](const Tensor& x, const Axes& axes) { return x.max(axes, true); });
}
Results global_lp(const OpCall& call) {
  const auto p = static_cast<double>(call.integer("p", 2));
  return require_spatial(call,
                         [&](const Tensor& x, const Axes& axes) { return abs(x).pow(p).sum(axes, true).pow(1 / p); });
}

}  // namespace

std::span<const OpRecord> pool_ops() {
  static constexpr OpRecord records[] = {
      {"MaxPool", 8, latest, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", max_pool},
      {"AveragePool", 7, 18, "auto_pad ceil_mode count_include_pad kernel_shape pads strides", average_pool},
      {"AveragePool", 19, latest, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
       average_pool},
      {"LpPool", 2, 17, "auto_pad kernel_shape p pads strides", lp_pool},
      {"LpPool", 18, latest, "auto_pad ceil_mode dilations kernel_shape p pads strides", lp_pool},
      {"GlobalAveragePool", 1, latest, "", global_average},
      {"GlobalMaxPool", 1, latest, "", global_max},
      {"GlobalLpPool", 2, latest, "p", global_lp},
  };
  return records;
}

}  // namespace lathe::onnx
