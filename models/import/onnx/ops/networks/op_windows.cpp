#include "models/import/onnx/ops/networks/op_windows.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/import/ops/sizes/window_counts.h"

namespace lathe::onnx {

namespace {

std::int64_t known_size(const OpCall& call, const Tensor& x, std::size_t i, std::string_view why) {
  const Dim size = x.size(static_cast<int>(i) + 2);
  if (!size.value())
    call.fail(fmt::format("{} depends on the unknown size {}", why, size.to_string()), "import_size",
              "give the spatial dims fixed sizes when you export the model");
  return *size.value();
}

/// Pads so that there is an output for each `stride` inputs.
void pad_to_same(const OpCall& call, const Tensor& x, bool is_upper, Windows& windows) {
  for (std::size_t i = 0; i < windows.size.size(); ++i) {
    std::int64_t total = windows.extent(i) - 1;
    if (windows.stride[i] != 1) {
      const std::int64_t n = known_size(call, x, i, "automatic padding");
      const std::int64_t outputs = (n + windows.stride[i] - 1) / windows.stride[i];
      total = std::max<std::int64_t>((outputs - 1) * windows.stride[i] + windows.extent(i) - n, 0);
    }
    windows.low[i] = is_upper ? total / 2 : total - total / 2;
    windows.high[i] = total - windows.low[i];
  }
}

Ints positive(const OpCall& call, std::string_view name, std::size_t count) {
  Ints numbers = call.integers(name, Ints(count, 1));
  if (numbers.size() != count || std::ranges::any_of(numbers, [](std::int64_t n) { return n < 1; }))
    call.fail(fmt::format("the attribute {} is not {} positive numbers", name, count), "import_attribute");
  return numbers;
}

}  // namespace

Windows windows_of(const OpCall& call, const Tensor& x, Ints size) {
  const std::size_t count = size.size();
  if (static_cast<std::size_t>(x.rank()) != count + 2)
    call.fail(fmt::format("windows of {} dims for an operand of rank {}", count, x.rank()), "import_operand");
  if (std::ranges::any_of(size, [](std::int64_t n) { return n < 1; }))
    call.fail("the windows have a size of 0 or less", "import_attribute");
  Windows windows{std::move(size), positive(call, "strides", count), positive(call, "dilations", count), {}, {}, {}};
  windows.low = windows.high = windows.excess = Ints(count, 0);
  const std::string mode = call.text("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    call.ignore({"pads"});
    pad_to_same(call, x, mode == "SAME_UPPER", windows);
  } else if (mode == "VALID") {
    call.ignore({"pads"});
  } else if (mode == "NOTSET") {
    const Ints pads = call.integers("pads", Ints(2 * count, 0));
    if (pads.size() != 2 * count || std::ranges::any_of(pads, [](std::int64_t n) { return n < 0; }))
      call.fail(fmt::format("the attribute pads is not {} numbers of 0 or more", 2 * count), "import_attribute");
    windows.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
    windows.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(count), pads.end());
  } else {
    call.fail(fmt::format("the attribute auto_pad is '{}'", mode), "import_attribute");
  }
  return windows;
}

Windows whole_windows_of(const OpCall& call, const Tensor& x, Ints size, bool rounds_up) {
  Windows windows = windows_of(call, x, std::move(size));
  for (std::size_t i = 0; i < windows.size.size(); ++i) {
    const int dim = static_cast<int>(i) + 2;
    importing::require_multiple(call, dim, x.size(dim), windows.stride[i]);
    const Dim padded = x.size(dim).unnamed() + Dim(windows.low[i] + windows.high[i]);
    if (rounds_up)
      windows.excess[i] = importing::ceil_excess(padded, windows.high[i], windows.extent(i), windows.stride[i]);
  }
  return windows;
}

Tensor padded_for(const Tensor& x, const Windows& windows, const Number& value, const Number& excess_value) {
  Tensor result = x;
  for (std::size_t i = 0; i < windows.size.size(); ++i) {
    const int dim = static_cast<int>(i) + 2;
    if (windows.low[i] > 0 || windows.high[i] > 0)
      result = padded(result, dim, windows.low[i], windows.high[i], value);
    if (windows.excess[i] > 0) result = padded(result, dim, 0, windows.excess[i], excess_value);
  }
  return result;
}

}  // namespace lathe::onnx
