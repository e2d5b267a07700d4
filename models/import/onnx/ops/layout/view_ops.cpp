#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/sizes/range_functions.h"

/// Ops that rearrange the elements of one operand.
namespace lathe::onnx {

namespace {

/// 0 keeps the size of the operand at the same place, unless allowzero is set. One size of -1 is inferred.
Results reshape_op(const OpCall& call) {
  const Shape old = call.operand(0).shape();
  const bool allows_zero = call.flag("allowzero", false);
  std::vector<Dim> sizes = call.dims(1, "the shape");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is(0) || allows_zero) continue;
    if (i >= static_cast<std::size_t>(old.rank()))
      call.fail(fmt::format("size {} of the shape is 0, and the operand has rank {}", i, old.rank()),
                "import_operand");
    sizes[i] = old[static_cast<int>(i)];
  }
  return {call.tensor(0).reshape(Shape(std::move(sizes)))};
}

Results transpose_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  Ints reversed(static_cast<std::size_t>(x.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {x.permute(call.integers("perm", reversed))};
}

Results squeeze_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  std::optional<Ints> axes = given_axes(call, 1, x.rank());
  if (!axes) {
    axes.emplace();
    for (int i = 0; i < x.rank(); ++i) {
      if (!x.size(i).value())
        call.fail(fmt::format("whether dim {} is removed depends on the size {}", i, x.size(i).to_string()),
                  "import_size", "give the axes");
      if (x.size(i).is(1)) axes->push_back(i);
    }
  }
  std::ranges::sort(*axes, std::greater());
  axes->erase(std::unique(axes->begin(), axes->end()), axes->end());
  for (const std::int64_t axis : *axes) x = x.squeeze(axis);
  return {x};
}

Results unsqueeze_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  const Ints given = call.has(1) ? call.integers(1, "axes") : call.integers("axes");
  Ints axes = axes_from_front(call, given, x.rank() + static_cast<int>(given.size()));
  std::ranges::sort(axes);
  for (const std::int64_t axis : axes) x = x.unsqueeze(axis);
  return {x};
}

/// Reshapes to a matrix: the dims before an axis are joined, and so are the others.
Results flatten_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t given = call.integer("axis", 1);
  const int axis = given == x.rank() ? x.rank() : x.rank() == 0 && given == 0 ? 0 : call.axis(given, x.rank());
  return {x.reshape({product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())})};
}

/// Broadcasts in both directions: a size of 1 in the shape keeps that of the operand.
Results expand_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  std::vector<Dim> sizes = call.dims(1, "the shape");
  const int rank = std::max(x.rank(), static_cast<int>(sizes.size()));
  sizes.insert(sizes.begin(), static_cast<std::size_t>(rank) - sizes.size(), Dim(1));
  for (int i = 0; i < x.rank(); ++i) {
    Dim& size = sizes[static_cast<std::size_t>(rank - x.rank() + i)];
    if (size.is(1)) size = x.size(i);
  }
  return {x.expand(Shape(std::move(sizes)))};
}

Results tile(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::vector<Dim> repeats = call.dims(1, "repeats");
  if (repeats.size() != static_cast<std::size_t>(x.rank()))
    call.fail(fmt::format("{} repeats for rank {}", repeats.size(), x.rank()), "import_operand");
  return {tiled(x, repeats)};
}

/// Elements from the last one down: flips the dim, so that they are a slice of positive steps.
Tensor sliced_backwards(const Tensor& x, int axis, const Dim& start, const Dim& end, std::int64_t step,
                        const OpCall& call) {
  const Dim size = x.size(axis).unnamed();
  const Dim first = importing::slice_bound(start, size, -1, call), last = importing::slice_bound(end, size, -1, call);
  const Dim from = size - Dim(1) - first, to = size - Dim(1) - last;
  const bool is_empty = (to - from).value().value_or(1) <= 0;
  return x.flip(axis).slice(axis, from, is_empty ? from : to, -step);
}

/// Exporters write -2^63 for the first element, which is no size. As a bound, all numbers that small are equal.
std::vector<Dim> bounds_of(const OpCall& call, std::size_t i, std::string_view name) {
  const HostTensor* const known = call.operand(i).numbers();
  if (!known) return call.dims(i, name);
  std::vector<Dim> bounds;
  for (std::int64_t k = 0; k < known->numel(); ++k)
    bounds.emplace_back(std::max(known->get_int(k), -std::numeric_limits<std::int64_t>::max()));
  return bounds;
}

/// Before opset 10, the bounds are attributes.
std::vector<Dim> bounds_of(const OpCall& call, const char* name) {
  std::vector<Dim> bounds;
  for (const std::int64_t bound : call.integers(name))
    bounds.emplace_back(std::max(bound, -std::numeric_limits<std::int64_t>::max()));
  return bounds;
}

Results slice_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  const bool has_attributes = call.has("starts");
  const std::vector<Dim> starts = has_attributes ? bounds_of(call, "starts") : bounds_of(call, 1, "starts"),
                         ends = has_attributes ? bounds_of(call, "ends") : bounds_of(call, 2, "ends");
  Ints axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has("axes")) axes = axes_from_front(call, call.integers("axes"), x.rank());
  if (call.has(3)) axes = axes_from_front(call, call.integers(3, "axes"), x.rank());
  const Ints steps = call.has(4) ? call.integers(4, "steps") : Ints(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.fail("starts, ends, axes and steps differ in their numbers of elements", "import_operand");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = static_cast<int>(axes[i]);
    if (axis >= x.rank()) call.fail("there are more starts than dims", "import_operand");
    if (steps[i] == 0) call.fail("a step is 0", "import_operand");
    if (steps[i] < 0) {
      x = sliced_backwards(x, axis, starts[i], ends[i], steps[i], call);
      continue;
    }
    x = importing::sliced(x, axis, starts[i], ends[i], steps[i], call);
  }
  return {x};
}

struct Blocks {
  Dim batch, channels, height, width;
  std::int64_t size;
};
Blocks blocks_of(const OpCall& call, const Tensor& x) {
  if (x.rank() != 4) call.fail("the operand is not [batch, channels, height, width]", "import_operand");
  const std::int64_t size = call.integer("blocksize");
  if (size < 1) call.fail("the blocksize is not positive", "import_attribute");
  return {x.size(0), x.size(1), x.size(2), x.size(3), size};
}

Results depth_to_space(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const auto [batch, channels, height, width, size] = blocks_of(call, x);
  const std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    call.fail(fmt::format("the attribute mode is '{}', not DCR or CRD", mode), "import_attribute");
  const Dim depth = channels / (size * size);
  const Tensor split = mode == "DCR"
                           ? x.reshape({batch, size, size, depth, height, width}).permute({0, 3, 4, 1, 5, 2})
                           : x.reshape({batch, depth, size, size, height, width}).permute({0, 1, 4, 2, 5, 3});
  return {split.reshape({batch, depth, height * Dim(size), width * Dim(size)})};
}

Results space_to_depth(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const auto [batch, channels, height, width, size] = blocks_of(call, x);
  const Dim rows = height / size, columns = width / size;
  const Tensor split = x.reshape({batch, channels, rows, size, columns, size}).permute({0, 3, 5, 1, 2, 4});
  return {split.reshape({batch, channels * Dim(size * size), rows, columns})};
}

Results trilu(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const bool is_upper = call.flag("upper", true);
  if (call.has(1) && !call.operand(1).dims()) {
    if (x.rank() < 2) call.fail("the operand is not a matrix", "import_operand");
    const Tensor rows = call.graph().arange(x.size(-2), i64).unsqueeze(1),
                 columns = call.graph().arange(x.size(-1), i64);
    const Tensor k = call.tensor(1).to(i64).reshape({}), diagonal = columns - rows;
    return {where(is_upper ? diagonal >= k : diagonal <= k, x, 0)};
  }
  const std::int64_t k = call.has(1) ? call.integer(1, "k") : 0;
  // Lathe's tril and triu take numbers.
  const auto op = [&](const Tensor& a) { return is_upper ? triu(a, k) : tril(a, k); };
  return {x.dtype() == boolean || is_byte(x.dtype()) ? op(x.to(i32)).to(x.dtype()) : op(x)};
}

}  // namespace

std::span<const OpRecord> view_ops() {
  static constexpr OpRecord records[] = {
      {"Reshape", 5, 13, "", reshape_op, Moves::first},
      {"Reshape", 14, latest, "allowzero", reshape_op, Moves::first},
      {"Transpose", 1, latest, "perm", transpose_op, Moves::first},
      {"Squeeze", 1, 12, "axes", squeeze_op, Moves::first},
      {"Squeeze", 13, latest, "", squeeze_op, Moves::first},
      {"Unsqueeze", 1, 12, "axes", unsqueeze_op, Moves::first},
      {"Unsqueeze", 13, latest, "", unsqueeze_op, Moves::first},
      {"Flatten", 1, latest, "axis", flatten_op, Moves::first},
      {"Expand", 8, latest, "", expand_op, Moves::first},
      {"Tile", 6, latest, "", tile, Moves::first},
      {"Slice", 1, 9, "axes ends starts", slice_op, Moves::first},
      {"Slice", 10, latest, "", slice_op, Moves::first},
      {"DepthToSpace", 1, 10, "blocksize", depth_to_space},
      {"DepthToSpace", 11, latest, "blocksize mode", depth_to_space},
      {"SpaceToDepth", 1, latest, "blocksize", space_to_depth},
      {"Trilu", 14, latest, "upper", trilu},
  };
  return records;
}

}  // namespace lathe::onnx
