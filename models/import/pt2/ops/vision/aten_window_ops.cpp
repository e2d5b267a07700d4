#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/import/ops/vision/folded_windows.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Windows of images as columns, images from columns, and channels from blocks of elements.
namespace lathe::pt2 {

namespace {

/// The windows over the last two dims.
struct Blocks {
  Ints size, stride, padding, dilation;
};
Blocks blocks_of(const OpCall& call) {
  const auto pair = [&](std::string_view name, std::int64_t fallback) {
    Ints numbers = per_dim_argument(call, name, fallback).numbers;
    if (numbers.size() == 1) numbers.push_back(numbers[0]);
    if (numbers.size() != 2 || std::ranges::any_of(numbers, [&](std::int64_t n) { return n < fallback; }))
      call.fail(fmt::format("the argument {} is not two numbers of {} or more", name, fallback), "import_attribute");
    return numbers;
  };
  return {pair("kernel_size", 1), pair("stride", 1), pair("padding", 0), pair("dilation", 1)};
}

/// [N, C, h, w] -> [N, C * elements of a window, windows]
Results im2col(const OpCall& call) {
  const Tensor given = call.tensor(0);
  const bool has_batch = given.rank() == 4;
  if (!has_batch && given.rank() != 3)
    call.fail(fmt::format("the operand has {} dims", given.rank()), "import_operand");
  Tensor x = has_batch ? given : given.unsqueeze(0);
  const Blocks blocks = blocks_of(call);
  PerDim strides = 1;
  strides.numbers = blocks.stride;
  require_multiples(call, x, 2, strides);
  for (std::size_t i = 0; i < 2; ++i) {
    const int dim = static_cast<int>(i) + 2;
    if (blocks.padding[i] > 0) x = pad(x, dim, blocks.padding[i], blocks.padding[i]);
    x = x.unfold(dim, {.size = blocks.size[i], .step = blocks.stride[i], .dilation = blocks.dilation[i]});
  }
  // [N, C, rows, columns, height, width] of windows and of the elements of a window
  const Dim elements = x.size(1).unnamed() * Dim(blocks.size[0] * blocks.size[1]);
  const Tensor y =
      x.permute({0, 1, 4, 5, 2, 3}).reshape({x.size(0), elements, x.size(2).unnamed() * x.size(3).unnamed()});
  return {has_batch ? y : y.squeeze(0)};
}

/// Adds the columns of windows to their places in an image.
Results col2im(const OpCall& call) {
  const Tensor given = call.tensor(0);
  const bool has_batch = given.rank() == 3;
  if (!has_batch && given.rank() != 2)
    call.fail(fmt::format("the operand has {} dims", given.rank()), "import_operand");
  const std::vector<Dim> sizes = call.dims(1, "output_size");
  if (sizes.size() != 2) call.fail("output_size has not two sizes", "import_operand");
  const Blocks blocks = blocks_of(call);
  const Tensor x = importing::image_of_columns(call, has_batch ? given : given.unsqueeze(0),
                                               {.image = sizes,
                                                .size = blocks.size,
                                                .stride = blocks.stride,
                                                .dilation = blocks.dilation,
                                                .low = blocks.padding,
                                                .high = blocks.padding});
  return {has_batch ? x : x.squeeze(0)};
}

/// Permutes the last `count` dims after a reshape.
Tensor rearranged(const Tensor& x, const Shape& split, std::initializer_list<int> order, const Shape& joined) {
  const int first = split.rank() - static_cast<int>(order.size());
  Ints dims(static_cast<std::size_t>(first));
  std::iota(dims.begin(), dims.end(), 0);
  for (const int i : order) dims.push_back(first + i);
  return x.reshape(split).permute(dims).reshape(joined);
}

/// Returns the dims before the last `count` ones, and others after them.
Shape with_last(const Tensor& x, int count, std::initializer_list<Dim> last) {
  Shape shape;
  for (int i = 0; i + count < x.rank(); ++i) shape.push_back(x.size(i));
  for (const Dim& size : last) shape.push_back(size);
  return shape;
}

std::int64_t factor_of(const OpCall& call, std::string_view name, int rank) {
  const std::int64_t factor = call.integer(name);
  constexpr std::int64_t most = 1 << 14;
  if (rank < 3 || factor < 1 || factor > most)
    call.fail(fmt::format("the factor {} for rank {}", factor, rank), "import_operand");
  return factor;
}

/// [.., C * r * r, h, w] -> [.., C, h * r, w * r]
Results pixel_shuffle(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t r = factor_of(call, "upscale_factor", x.rank());
  const Dim channels = x.size(-3) / (r * r), height = x.size(-2).unnamed(), width = x.size(-1).unnamed();
  return {rearranged(x, with_last(x, 3, {channels, r, r, height, width}), {0, 3, 1, 4, 2},
                     with_last(x, 3, {channels, height * Dim(r), width * Dim(r)}))};
}

/// [.., C, h * r, w * r] -> [.., C * r * r, h, w]
Results pixel_unshuffle(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t r = factor_of(call, "downscale_factor", x.rank());
  require_multiples(call, x, 2, r);
  const Dim channels = x.size(-3).unnamed(), height = x.size(-2) / r, width = x.size(-1) / r;
  return {rearranged(x, with_last(x, 3, {channels, height, r, width, r}), {0, 2, 4, 1, 3},
                     with_last(x, 3, {channels * Dim(r * r), height, width}))};
}

/// Interleaves the channels of groups.
Results channel_shuffle(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t groups = call.integer("groups");
  const std::optional<Dim> each = x.rank() < 2 || groups < 1 ? std::nullopt : x.size(1).divided_by(groups);
  if (!each) call.fail(fmt::format("{} groups of channels for {}", groups, x.shape().to_string()), "import_operand");
  Shape split{x.size(0), groups, *each};
  for (int i = 2; i < x.rank(); ++i) split.push_back(x.size(i));
  return {x.reshape(split).transpose(1, 2).reshape(x.shape())};
}

/// The largest element along a dim, whose gradient goes to the first one of equal elements.
Tensor largest(const Tensor& x, int dim, bool keeps_dim) {
  const Tensor first = take_along(x, argmax(x, dim).unsqueeze(dim), dim);
  return straight_through(x.max(dim, keeps_dim), keeps_dim ? first : first.squeeze(dim));
}

/// The largest element of each of `count` windows that cover a dim.
Tensor largest_of_windows(const OpCall& call, const Tensor& x, int dim, std::int64_t count) {
  if (count == 1) return largest(x, dim, true);
  const Dim size = x.size(dim).unnamed();
  if (const std::optional<Dim> each = size.divided_by(count)) {
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
      shape.push_back(i == dim ? Dim(count) : x.size(i));
      if (i == dim) shape.push_back(*each);
    }
    return largest(x.reshape(shape), dim + 1, false);
  }
  if (!size.value())
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {} windows", size.to_string(), count),
                   importing::needed_multiple(size, count));
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * *size.value() / count, last = ((i + 1) * *size.value() + count - 1) / count;
    parts.push_back(largest(x.slice(dim, first, last), dim, true));
  }
  return concat(parts, dim);
}

Results adaptive_max_pool(const OpCall& call, int spatial) {
  if (call.reads(1)) call.fail("the positions of the largest elements are not supported");
  Tensor x = call.tensor(0);
  Ints counts = per_dim_argument(call, "output_size", 1).numbers;
  if (counts.size() == 1) counts.resize(static_cast<std::size_t>(spatial), counts[0]);
  if (static_cast<int>(counts.size()) != spatial || x.rank() <= spatial ||
      std::ranges::any_of(counts, [](std::int64_t n) { return n < 1; }))
    call.fail("output_size has not one positive size for each spatial dim", "import_attribute");
  for (int i = spatial - 1; i >= 0; --i)  // so that equal elements are in row-major order
    x = largest_of_windows(call, x, x.rank() - spatial + i, counts[static_cast<std::size_t>(i)]);
  return {x};
}
template <int spatial>
Results adaptive_max(const OpCall& call) {
  return adaptive_max_pool(call, spatial);
}

}  // namespace

std::span<const OpRecord> aten_window_ops() {
  constexpr std::string_view windows = "kernel_size dilation padding stride";
  static constexpr OpRecord records[] = {
      aten("im2col", "self", windows, im2col),
      aten("col2im", "self output_size", windows, col2im),
      aten("pixel_shuffle", "self", "upscale_factor", pixel_shuffle),
      aten("pixel_unshuffle", "self", "downscale_factor", pixel_unshuffle),
      aten("channel_shuffle", "self", "groups", channel_shuffle),
      aten("adaptive_max_pool1d", "self", "output_size", adaptive_max<1>),
      aten("adaptive_max_pool2d", "self", "output_size", adaptive_max<2>),
      aten("adaptive_max_pool3d", "self", "output_size", adaptive_max<3>),
  };
  return records;
}

}  // namespace lathe::pt2
