#include <fmt/core.h>

#include <limits>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/layout/reduced_dims.h"

/// Ops that select elements by their rank in the order of a dim, and positions in sorted tensors.
namespace lathe::pt2 {

namespace {

Results sort_first(const OpCall& call) {
  const Tensor given = call.tensor(0);
  if (given.rank() == 0) return {given};
  return {sort(comparable(given), 0).values.to(given.dtype())};
}

/// The axis of an op over a dim or, without `dim`, the tensor as one dim.
struct OrderedDim {
  Tensor x;
  int axis = 0;
  bool keeps = false;
};
OrderedDim ordered_dim(const OpCall& call, bool needs_dim) {
  const Tensor x = comparable(call.tensor(0));
  if (!call.has("dim") && !needs_dim) return {as_vector(x), 0, false};
  const bool keeps = call.flag("keepdim", false);
  if (x.rank() == 0) {
    call.ignore({"dim"});
    return {x.reshape({1}), 0, false};
  }
  return {x, axis_argument(call, x.rank(), std::int64_t{-1}), keeps};
}

/// The elements and their positions at one rank of the order, i64 [.., 1, ..] or [].
Results at_rank(const OpCall& call, const OrderedDim& line, const Tensor& rank) {
  const auto [values, positions] = sort(line.x, line.axis);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found =
        rank.rank() == 0 ? gather(sorted, rank.unsqueeze(0), line.axis) : take_along(sorted, rank, line.axis);
    return line.keeps ? found : found.squeeze(line.axis);
  };
  return {at(values).to(call.dtype(0)), at(positions)};
}

/// The element in the middle, the lower one of two. It is NaN if there is a NaN, or the middle of the numbers.
Results median(const OpCall& call, bool needs_dim, bool skips_nan) {
  const OrderedDim line = ordered_dim(call, needs_dim);
  const Tensor last = call.graph().dim_value(line.x.size(line.axis)) - 1;
  if (!is_float(line.x.dtype())) return at_rank(call, line, last / 2);
  const Tensor is_nan = isnan(line.x);
  if (skips_nan) {
    const Tensor numbers = (~is_nan).to(i64).sum(line.axis, true);
    return at_rank(call, line, maximum(numbers - 1, 0) / 2);
  }
  return at_rank(call, line, where(is_nan.any(line.axis, true), last, last / 2));  // NaN is sorted to the end
}
Results median_along(const OpCall& call) { return median(call, true, false); }
/// The median of all elements shares its gradient among the elements that equal it.
Results median_of_all(const OpCall& call, bool skips_nan) {
  const Tensor value = median(call, false, skips_nan)[0].in(call.graph()), x = call.tensor(0);
  if (!is_float(x.dtype())) return {value};
  const Tensor is_equal = x == value, count = maximum(is_equal.to(x.dtype()).sum(), 1);
  return {straight_through(value, where(is_equal, x, 0).sum() / count)};
}
Results plain_median_of_all(const OpCall& call) { return median_of_all(call, false); }
Results nan_median_along(const OpCall& call) { return median(call, true, true); }
Results nan_median_of_all(const OpCall& call) { return median_of_all(call, true); }

/// The k-th smallest element, from 1.
Results kth_value(const OpCall& call) {
  const OrderedDim line = ordered_dim(call, true);
  const std::vector<Dim> k = call.dims(1, "k");
  if (k.size() != 1) call.fail("k has more than one element", "import_operand");
  const Ranked ranked = sort(line.x, line.axis);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found = sorted.slice(line.axis, k[0] - Dim(1), k[0]);
    return line.keeps ? found : found.squeeze(line.axis);
  };
  return {at(ranked.values).to(call.dtype(0)), at(ranked.indices)};
}

/// The element that occurs most often, the smallest of several, and the position of the last one that equals it. Each
/// NaN counts as an element of its own.
Results most_frequent(const OpCall& call) {
  const OrderedDim line = ordered_dim(call, true);
  const auto [values, positions] = sort(line.x, line.axis);
  const Dim size = values.size(line.axis).unnamed();
  const Tensor before = values.roll(1, line.axis);
  const Tensor numbers = along_axis(call.graph().arange(size, i64), line.axis, values.rank());
  const Tensor starts = where((values != before) | (numbers == 0), numbers, 0);  // of runs of equal elements
  // The start of the own run is the largest one so far.
  const Tensor first = scan({starts.transpose(0, line.axis).select(0, 0)}, {starts.transpose(0, line.axis)},
                            [](std::span<const Tensor> latest, std::span<const Tensor> start) {
                              const Tensor larger = maximum(latest[0], start[0]);
                              return LoopStep{{larger}, {larger}};
                            })
                           .outputs[0]
                           .transpose(0, line.axis);
  const Tensor rank = argmax(numbers - first, line.axis).unsqueeze(line.axis);
  const Tensor at = take_along(positions, rank, line.axis), found = take_along(line.x, at, line.axis);
  const auto kept = [&](const Tensor& y) { return line.keeps ? y : y.squeeze(line.axis); };
  return {kept(found).to(call.dtype(0)), kept(at)};
}

/// Elements of the order at ranks that need not be whole, both along the last dim.
Tensor interpolated(const OpCall& call, const Tensor& sorted, const Tensor& rank) {
  const std::string mode = call.text("interpolation", "linear");
  const auto at = [&](const Tensor& position) {
    return rank.rank() == 1 ? gather(sorted, position.to(i64), -1) : take_along(sorted, position.to(i64), -1);
  };
  if (mode == "linear") {
    const Tensor low = rank.floor(), below = at(low), above = at(rank.ceil());
    return below + (above - below) * (rank - low);
  }
  if (mode == "midpoint") return (at(rank.floor()) + at(rank.ceil())) * 0.5;
  if (mode == "lower") return at(rank.floor());
  if (mode == "higher") return at(rank.ceil());
  if (mode != "nearest") call.fail(fmt::format("the argument interpolation is '{}'", mode), "import_attribute");
  return at(rank.round());
}

/// Elements of the order at fractions q of its length, [] or [Q], which is dim 0 of the result. Between two elements
/// it is interpolated. A NaN makes the result NaN, or is left out.
Results quantile(const OpCall& call, bool skips_nan) {
  const bool keeps_all = !call.has("dim") && call.flag("keepdim", false);
  const OrderedDim line = ordered_dim(call, false);
  const Tensor& x = line.x;
  if (!is_float(x.dtype())) call.fail(fmt::format("quantiles of {}", name(x.dtype())), "import_dtype");
  const Tensor q = operand_as(call, 1, x.dtype());
  if (q.rank() > 1) call.fail("q has more than one dim", "import_operand");
  const Tensor is_nan = isnan(x).transpose(line.axis, -1);  // the dim is the last one
  Tensor count = call.graph().dim_value(x.size(line.axis)).to(x.dtype());
  if (skips_nan) count = (~is_nan).to(x.dtype()).sum(-1, true);
  const Tensor rank = as_vector(q) * (skips_nan ? maximum(count - 1.0, 0) : count - 1.0);
  const Tensor sorted = sort(x, line.axis).values.transpose(line.axis, -1);
  Tensor y = interpolated(call, sorted, rank);
  if (!skips_nan) y = where(is_nan.any(-1, true), std::numeric_limits<double>::quiet_NaN(), y);
  // [.., Q] -> [Q, .., 1, ..]
  Tensor result = y.unsqueeze(0).transpose(0, -1).transpose(line.axis + 1, -1);
  if (!line.keeps) result = result.squeeze(line.axis + 1);
  if (keeps_all)
    for (int i = 0; i < call.operand(0).rank(); ++i) result = result.unsqueeze(-1);
  return {q.rank() == 0 ? result.squeeze(0) : result};
}

Results plain_quantile(const OpCall& call) { return quantile(call, false); }
Results nan_quantile(const OpCall& call) { return quantile(call, true); }

/// The number of boundaries, sorted along their last dim, below each element, or not above it.
Tensor places(const OpCall& call, const Tensor& x, const Tensor& boundaries) {
  const bool is_right = call.flag("right", false) || call.text("side", "left") == "right";
  const Tensor elements = x.unsqueeze(-1), limits = boundaries.rank() == 1 ? boundaries : boundaries.unsqueeze(-2);
  // NaN has its place after all numbers.
  const Tensor is_passed = ~(is_right ? limits > elements : limits >= elements);
  return is_passed.to(i64).sum(-1).to(call.flag("out_int32", false) ? i32 : i64);
}
Results bucketize(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  return {places(call, operand_as(call, 0, dtype), operand_as(call, 1, dtype))};
}
Results search_sorted(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  const Tensor boundaries = operand_as(call, 0, dtype), x = operand_as(call, 1, dtype);
  if (boundaries.rank() > 1 && boundaries.rank() != x.rank())
    call.fail("sequences of several dims need values of the same rank", "import_operand");
  return {places(call, x, boundaries)};
}

}  // namespace

std::span<const OpRecord> aten_quantile_ops() {
  static constexpr OpRecord records[] = {
      aten("msort", "self", "", sort_first),
      aten("median", "self", "", plain_median_of_all),
      aten("median.dim", "self", "dim keepdim", median_along),
      aten("nanmedian", "self", "", nan_median_of_all),
      aten("nanmedian.dim", "self", "dim keepdim", nan_median_along),
      aten("kthvalue", "self k", "dim keepdim", kth_value),
      aten("mode", "self", "dim keepdim", most_frequent),
      aten("quantile", "self q", "dim keepdim interpolation", plain_quantile),
      aten("quantile.scalar", "self q", "dim keepdim interpolation", plain_quantile),
      aten("nanquantile", "self q", "dim keepdim interpolation", nan_quantile),
      aten("nanquantile.scalar", "self q", "dim keepdim interpolation", nan_quantile),
      aten("bucketize.Tensor", "self boundaries", "out_int32 right", bucketize),
      aten("bucketize.Scalar", "self boundaries", "out_int32 right", bucketize),
      aten("searchsorted.Tensor", "sorted_sequence self", "out_int32 right side", search_sorted),
      aten("searchsorted.Scalar", "sorted_sequence self", "out_int32 right side", search_sorted),
  };
  return records;
}

}  // namespace lathe::pt2
