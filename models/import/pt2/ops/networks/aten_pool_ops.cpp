#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/sizes/window_counts.h"
#include "models/import/ops/whole_resize.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/networks/pool_positions.h"

namespace lathe::pt2 {

namespace {

std::int64_t at(const OpCall& call, const PerDim& numbers, int i) {
  const std::size_t k = numbers.numbers.size() == 1 ? 0 : static_cast<std::size_t>(i);
  if (k >= numbers.numbers.size()) call.fail("an argument has too few numbers", "import_attribute");
  return numbers.numbers[k];
}

/// Returns the elements at the end of each spatial dim that a rounded up number of windows needs: its last window
/// ends after the operand.
std::vector<std::int64_t> ceil_excess_of(const OpCall& call, const Tensor& x, const PoolOptions& options,
                                         int spatial) {
  std::vector<std::int64_t> excess(static_cast<std::size_t>(spatial), 0);
  if (!call.flag("ceil_mode", false)) return excess;
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t size = at(call, options.size, i), given = at(call, options.stride, i);
    const std::int64_t padding = at(call, options.padding, i), step = given == 0 ? size : given;
    if (size < 1 || step < 1) call.fail("a window or a stride of 0 or less", "import_attribute");
    excess[static_cast<std::size_t>(i)] =
        importing::ceil_excess(x.size(x.rank() - spatial + i).unnamed() + Dim(2 * padding), padding,
                               at(call, options.dilation, i) * (size - 1) + 1, step);
  }
  return excess;
}

/// Adds elements of one value around the spatial dims: `padding` on both sides, and the excess at the end.
Tensor surrounded(const OpCall& call, Tensor x, const PerDim& padding, const std::vector<std::int64_t>& excess,
                  double value) {
  const int spatial = static_cast<int>(excess.size());
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t low = at(call, padding, i), high = low + excess[static_cast<std::size_t>(i)];
    if (low > 0 || high > 0) x = padded(x, x.rank() - spatial + i, low, high, value);
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

/// Returns the mean of each window, or its sum divided by the argument `divisor_override`. A window that ends after
/// the operand counts the elements up to the end of the padding: the mean of a tensor with 1 at the elements that
/// count, and 0 elsewhere, is their part of the window.
Tensor mean_of_windows(const OpCall& call, const Tensor& x, Pool pool, PoolOptions options,
                       const std::vector<std::int64_t>& excess) {
  const auto means = [&](const Tensor& a) { return pool(a, options, Where::current()); };
  const bool counts_padding = options.count_padding, has_divisor = call.has("divisor_override");
  const bool has_excess = std::ranges::any_of(excess, [](std::int64_t n) { return n > 0; });
  if (!has_divisor && !has_excess) return means(x);
  const Tensor zeros = surrounded(call, x, options.padding, excess, 0);
  Shape own = x.shape();
  for (int i = 0; i < 2; ++i) own.set(i, 1);
  const std::vector<std::int64_t> nothing(excess.size(), 0);
  const Tensor ones = call.graph().ones(own, x.dtype());
  const Tensor counted = surrounded(call, ones, options.padding, nothing, counts_padding ? 1 : 0);
  options.padding = 0;
  if (has_divisor) {
    std::int64_t elements = 1;
    for (int i = 0; i < static_cast<int>(excess.size()); ++i) elements *= at(call, options.size, i);
    const std::int64_t divisor = call.integer("divisor_override");
    if (divisor == 0) call.fail("the argument divisor_override is 0", "import_attribute");
    return means(zeros) * (static_cast<double>(elements) / static_cast<double>(divisor));
  }
  return means(zeros) / means(surrounded(call, counted, 0, excess, 0));
}

/// An operand without the batch dim is one element of a batch.
Results pooled(const OpCall& call, Pool pool, int spatial, bool is_max) {
  Tensor x = call.tensor(0);
  PoolOptions options = pool_options(call);
  const bool is_stride_given = std::ranges::any_of(options.stride.numbers, [](std::int64_t n) { return n != 0; });
  require_multiples(call, x, spatial, is_stride_given ? options.stride : options.size);
  const std::vector<std::int64_t> excess = ceil_excess_of(call, x, options, spatial);
  const bool has_batch = x.rank() == spatial + 2;
  if (!has_batch) x = x.unsqueeze(0);
  const auto result = [&](const Tensor& y) { return has_batch ? y : y.squeeze(0); };
  if (!is_max) return {result(mean_of_windows(call, x, pool, options, excess))};
  x = surrounded(call, x, 0, excess, -std::numeric_limits<double>::infinity());
  const Tensor y = pool(x, options, Where::current());
  if (!call.reads(1)) return {result(y)};
  Shape sizes = x.shape();  // without the elements that were added at the end
  for (int i = 1; i <= spatial; ++i) sizes.set(x.rank() - i, call.operand(0).shape()[call.operand(0).rank() - i]);
  return {result(y), result(max_positions(call, x, options, sizes))};
}
Results max_pool1d_op(const OpCall& call) { return pooled(call, max_pool1d, 1, true); }
Results max_pool2d_op(const OpCall& call) { return pooled(call, max_pool2d, 2, true); }
Results avg_pool1d_op(const OpCall& call) { return pooled(call, avg_pool1d, 1, false); }
Results avg_pool2d_op(const OpCall& call) { return pooled(call, avg_pool2d, 2, false); }

/// Windows are separable: those of the last two dims first, then those of the first spatial dim.
Tensor pool3d(Tensor (*pool2d)(const Tensor&, const PoolOptions&, Where), const Tensor& x, const PoolOptions& options,
              Where at) {
  const auto part = [](const PerDim& all, bool is_first) {
    Ints numbers = all.numbers;
    if (numbers.size() == 1) numbers.resize(3, numbers[0]);
    PerDim two = 0;
    two.numbers = is_first ? Ints{numbers[0]} : Ints(numbers.begin() + 1, numbers.end());
    return two;
  };
  const auto options_of = [&](bool is_first) {
    PoolOptions o{.size = part(options.size, is_first),
                  .stride = part(options.stride, is_first),
                  .padding = part(options.padding, is_first),
                  .dilation = part(options.dilation, is_first),
                  .count_padding = options.count_padding};
    if (!is_first) return o;
    if (o.stride.numbers[0] == 0) o.stride = o.size;
    for (auto [numbers, none] :
         {std::pair(&o.size, 1), std::pair(&o.stride, 1), std::pair(&o.padding, 0), std::pair(&o.dilation, 1)})
      numbers->numbers.push_back(none);
    return o;
  };
  const Tensor planes = x.reshape({x.size(0), x.size(1).unnamed() * x.size(2).unnamed(), x.size(3), x.size(4)});
  const Tensor pooled_planes = pool2d(planes, options_of(false), at);
  const Dim height = pooled_planes.size(2).unnamed(), width = pooled_planes.size(3).unnamed();
  const Tensor columns = pooled_planes.reshape({x.size(0), x.size(1), x.size(2), height * width});
  const Tensor y = pool2d(columns, options_of(true), at);
  return y.reshape({x.size(0), x.size(1), y.size(2), height, width});
}
Results avg_pool3d_op(const OpCall& call) {
  const auto pool = [](const Tensor& x, const PoolOptions& o, Where at) { return pool3d(avg_pool2d, x, o, at); };
  return pooled(call, pool, 3, false);
}
Results max_pool3d_op(const OpCall& call) {
  const auto pool = [](const Tensor& x, const PoolOptions& o, Where at) { return pool3d(max_pool2d, x, o, at); };
  return pooled(call, pool, 3, true);
}

/// Puts elements at the positions that a max pool has returned, in zeros of the given size.
Results max_unpool(const OpCall& call, int spatial) {
  const Tensor x = call.tensor(0);
  const std::vector<Dim> sizes = call.dims(2, "output_size");
  const int first = x.rank() - spatial;
  if (first < 1 || static_cast<int>(sizes.size()) != spatial)
    call.fail("output_size has not one size for each spatial dim", "import_operand");
  Shape result, flat{product(x.shape(), 0, first), product(x.shape(), first, x.rank())};
  for (int i = 0; i < first; ++i) result.push_back(x.size(i));
  Dim elements = 1;
  for (const Dim& size : sizes) result.push_back(size), elements = elements * size;
  const Tensor positions = importing::checked(call.tensor(1).reshape(flat), elements);
  const Tensor zeros = call.graph().zeros({flat[0], elements}, x.dtype());
  return {update_rows(zeros, positions, x.reshape(flat), 1).reshape(result)};
}
Results max_unpool2d(const OpCall& call) { return max_unpool(call, 2); }
Results max_unpool3d(const OpCall& call) {
  call.ignore({"stride", "padding"});  // output_size follows from them
  return max_unpool(call, 3);
}

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

/// The last two dims first, then the first spatial dim.
Results adaptive_pool3d(const OpCall& call) {
  const Tensor given = call.tensor(0);
  Ints sizes = per_dim_argument(call, "output_size", 1).numbers;
  if (sizes.size() == 1) sizes.resize(3, sizes[0]);
  if (sizes.size() != 3 || (given.rank() != 4 && given.rank() != 5))
    call.fail("the operand or output_size has not 3 spatial dims", "import_operand");
  const Tensor x = given.rank() == 5 ? given : given.unsqueeze(0);
  const Dim channels = x.size(1).unnamed(), depth = x.size(2).unnamed();
  const Tensor planes =
      adaptive_avg_pool2d(x.reshape({x.size(0), channels * depth, x.size(3), x.size(4)}), {sizes[1], sizes[2]});
  const Dim area(sizes[1] * sizes[2]);
  const Tensor columns = planes.reshape({x.size(0), channels, depth, area}).transpose(2, 3);
  const Tensor y = adaptive_avg_pool1d(columns.reshape({x.size(0), channels * area, depth}), sizes[0]);
  const Tensor result = y.reshape({x.size(0), channels, area, sizes[0]})
                            .transpose(2, 3)
                            .reshape({x.size(0), channels, sizes[0], sizes[1], sizes[2]});
  return {given.rank() == 5 ? result : result.squeeze(0)};
}

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
      aten("avg_pool3d", "self", of_mean, avg_pool3d_op),
      aten("max_pool3d", "self", of_max, max_pool3d_op),
      aten("max_pool3d_with_indices", "self", of_max, max_pool3d_op),
      aten("max_pool1d_with_indices", "self", of_max, max_pool1d_op),
      aten("max_unpool2d", "self indices output_size", "", max_unpool2d),
      aten("max_unpool3d", "self indices output_size", "stride padding", max_unpool3d),
      aten("adaptive_avg_pool1d", "self", "output_size", adaptive_pool1d),
      aten("adaptive_avg_pool2d", "self", "output_size", adaptive_pool2d),
      aten("adaptive_avg_pool3d", "self", "output_size", adaptive_pool3d),
      aten("_adaptive_avg_pool3d", "self", "output_size", adaptive_pool3d),
      aten("_adaptive_avg_pool2d", "self", "output_size", adaptive_pool2d),
  };
  return records;
}

}  // namespace lathe::pt2
