#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

Tensor window_sums(const Tensor& x, const Windows& windows) {
  return over_windows(x, windows, [](const Tensor& a, const Tensor& b) { return a + b; });
}

/// Returns the numbers of the elements of x [batch, channels, ..], i64, in its shape: row-major, or with the first
/// spatial dim as the fastest one.
Tensor element_numbers(const Tensor& x, bool is_column_major) {
  const Graph graph = x.graph();
  Dim stride = 1;
  Tensor numbers;
  const auto add = [&](int dim) {
    const Tensor term = along_axis(graph.arange(x.size(dim), i64), dim, x.rank()) * graph.dim_value(stride);
    numbers = numbers.is_empty() ? term : numbers + term;
    stride = stride * x.size(dim).unnamed();
  };
  for (int i = 2; i < x.rank(); ++i) add(is_column_major ? i : x.rank() + 1 - i);
  add(1);
  add(0);
  return numbers.expand(x.shape());
}

/// A value with the number of its element.
struct Numbered {
  Tensor value, number;
};

/// Returns the largest element of each window; of equal ones the first in row-major order.
Numbered largest_of(const Numbered& x, const Windows& windows) {
  Numbered result = x;
  for (std::size_t i = windows.size.size(); i-- > 0;) {
    const UnfoldOptions options{.size = windows.size[i], .step = windows.stride[i], .dilation = windows.dilation[i]};
    const int dim = static_cast<int>(i) + 2;
    const Tensor values = unfold(result.value, dim, options), numbers = unfold(result.number, dim, options);
    result = {values.select(-1, 0), numbers.select(-1, 0)};
    for (std::int64_t k = 1; k < windows.size[i]; ++k) {
      const Tensor value = values.select(-1, k), is_larger = (value > result.value) | (value != value);
      result = {where(is_larger, value, result.value), where(is_larger, numbers.select(-1, k), result.number)};
    }
  }
  return result;
}

/// Padding is never the largest element. The first of equal elements gets the gradient.
Results max_pool(const OpCall& call) {
  const bool is_column_major = call.flag("storage_order", false);
  const Tensor given = call.tensor(0), x = is_byte(given.dtype()) ? given.to(i32) : given;
  const Windows windows = whole_windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
  const Number lowest = is_float(x.dtype()) ? Number(-std::numeric_limits<double>::infinity())
                                            : Number(integer_limits(x.dtype()).lowest);
  const Tensor source = padded_for(x, windows, lowest, lowest);
  if (call.reads(1)) {
    const Tensor numbers = padded_for(element_numbers(x, is_column_major), windows, 0, 0);
    const Numbered largest = largest_of({source, numbers}, windows);
    return {largest.value.to(given.dtype()), largest.number};
  }
  const auto larger = [](const Tensor& a, const Tensor& b) { return where((b > a) | (b != b), b, a); };
  return {over_windows(source, windows, larger).to(given.dtype())};
}

/// Writes each element at its number in the input of the pool, and zeros elsewhere. A larger shape adds zeros.
Results max_unpool(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Windows windows = windows_of(call, x, call.integers("kernel_shape"));
  Shape shape{x.size(0), x.size(1)};
  for (std::size_t i = 0; i < windows.size.size(); ++i)
    shape.push_back((x.size(static_cast<int>(i) + 2).unnamed() - Dim(1)) * Dim(windows.stride[i]) +
                    Dim(windows.size[i] - windows.low[i] - windows.high[i]));
  const Dim count = x.shape().numel();
  Tensor y = update_rows(call.graph().zeros({shape.numel().unnamed()}, x.dtype()), call.tensor(1).reshape({count}),
                         x.reshape({count}))
                 .reshape(shape);
  if (!call.has(2)) return {y};
  const std::vector<Dim> wanted = call.dims(2, "output_shape");
  if (wanted.size() != static_cast<std::size_t>(y.rank()))
    call.fail(fmt::format("output_shape has {} sizes for {} dims", wanted.size(), y.rank()), "import_operand");
  for (int i = 2; i < y.rank(); ++i)
    if (const Dim missing = wanted[static_cast<std::size_t>(i)] - shape[i]; !missing.is(0)) y = pad(y, i, 0, missing);
  return {y};
}

/// The mean of each window, with or without its padding. Elements that only ceil_mode adds do not count.
Results average_pool(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Windows windows = whole_windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
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
  const Windows windows = whole_windows_of(call, x, call.integers("kernel_shape"), call.flag("ceil_mode", false));
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
      {"MaxPool", 1, latest, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", max_pool},
      {"MaxUnpool", 9, latest, "kernel_shape pads strides", max_unpool},
      {"AveragePool", 1, 18, "auto_pad ceil_mode count_include_pad kernel_shape pads strides", average_pool},
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
