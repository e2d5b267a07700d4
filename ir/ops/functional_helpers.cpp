#include <fmt/core.h>

#include "ir/ops/functional.h"
#include "ir/ops/rules.h"

/// Functions of functional.h that are no ops of their own, only compositions of some.
namespace lathe::ir {

namespace {

[[noreturn]] void fail(const Value& a, std::string_view function, std::string_view label, std::string_view message,
                       std::string_view hint) {
  throw UserError(a.builder().location(), function, message, label, hint);
}

int checked_axis(const Value& a, std::string_view function, int dim, int rank) {
  if (dim < -rank || dim >= rank)
    fail(a, function, "dim_range", fmt::format("dim {} is out of range for a tensor of rank {}", dim, rank),
         rank == 0 ? "a scalar has no dims" : fmt::format("use {} to {}", -rank, rank - 1));
  return rules::normalize_axis(dim, rank);
}

}  // namespace

/// An unknown size n is read off an iota of n + 1 elements, of which element n is n: a view, so nothing is stored.
Value dim_value(GraphBuilder& b, const Dim& size, DType dtype) {
  if (const auto number = size.value()) return constant(b, static_cast<double>(*number), dtype);
  return cast(select(iota(b, {size.unnamed() + 1}, 0, i64), 0, size.unnamed()), dtype);
}

Value select(const Value& a, int dim, const Dim& index) {
  const int axis = checked_axis(a, "select", dim, a.rank());
  const Dim start = index.value().value_or(0) < 0 ? a.shape()[axis] + index : index;
  return squeeze(slice(a, axis, start, start + 1), axis);
}

std::vector<Value> split(const Value& a, const Dim& size, int dim) {
  const int axis = checked_axis(a, "split", dim, a.rank());
  const Dim total = a.shape()[axis];
  std::int64_t pieces = 0;
  if (total.value() && size.value() && *size.value() > 0) {
    pieces = (*total.value() + *size.value() - 1) / *size.value();
  } else {
    const auto ratio = total.divided_by(size);
    if (!ratio || !ratio->value())
      fail(a, "split", "split_size",
           fmt::format("dim {} of size {} has no known number of pieces of size {}", axis, total.to_string(),
                       size.to_string()),
           "give a positive size that divides the dim a known number of times");
    pieces = *ratio->value();
  }
  if (pieces == 0) return {slice(a, axis, 0, total)};
  std::vector<Value> result;
  for (std::int64_t i = 0; i < pieces; ++i)
    result.push_back(slice(a, axis, size * Dim(i), i + 1 == pieces ? total : size * Dim(i + 1)));
  return result;
}

std::vector<Value> chunk(const Value& a, std::int64_t chunks, int dim) {
  const int axis = checked_axis(a, "chunk", dim, a.rank());
  const Dim total = a.shape()[axis];
  if (chunks > 0) {
    if (const auto number = total.value())
      return split(a, std::max<std::int64_t>((*number + chunks - 1) / chunks, 1), axis);
    if (const auto size = total.divided_by(Dim(chunks))) return split(a, *size, axis);
  }
  fail(a, "chunk", "chunk_size",
       fmt::format("dim {} of size {} cannot be cut into {} chunks", axis, total.to_string(), chunks),
       "give a positive number that divides the size of the dim");
}

Value flatten(const Value& a, int first, int last) {
  if (a.rank() == 0) return reshape(a, {1});
  const int from = checked_axis(a, "flatten", first, a.rank()), to = checked_axis(a, "flatten", last, a.rank());
  if (from > to)
    fail(a, "flatten", "flatten_order", fmt::format("dim {} comes after dim {}", first, last),
         "name the first dim first");
  const Shape shape = a.shape();
  Shape joined;
  Dim product(1);
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < from || i > to) joined.push_back(shape[i]);
    if (i >= from && i <= to) product = from == to ? shape[i] : product * shape[i].unnamed();
    if (i == to) joined.push_back(product);
  }
  return reshape(a, joined);
}

Value sum_to(const Value& a, const Shape& shape) {
  const Shape target = shape, from = a.shape();
  const int extra = from.rank() - target.rank();
  if (extra < 0)
    fail(a, "sum_to", "sum_to_shape",
         fmt::format("{} has fewer dims than {}", a.type().to_string(), target.to_string()),
         "the shape must be one that broadcasts to the tensor's");
  std::vector<std::int64_t> summed;
  std::vector<int> ones;  // dims of the target to put back
  for (int i = 0; i < from.rank(); ++i) {
    const int to = i - extra;
    if (to < 0) {
      summed.push_back(i);
    } else if (target[to].is(1) && !from[i].is(1)) {
      summed.push_back(i);
      ones.push_back(to);
    } else if (target[to].equals(from[i]) == Dim::Answer::no) {
      fail(a, "sum_to", "sum_to_shape",
           fmt::format("{} cannot be summed to {}", a.type().to_string(), target.to_string()),
           "the shape must be one that broadcasts to the tensor's");
    }
  }
  Value result = a;
  if (!summed.empty()) result = sum(a, summed, extra == 0);
  if (extra > 0)
    for (const int to : ones) result = unsqueeze(result, to);
  // Dims that are equal by a run-time check only.
  return result.shape() == target ? result : reshape(result, target);
}

/// Gathers from the flattened tensor: the position of a[i, index[i, j], ..] is worked out from its strides.
Value take_along(const Value& a, const Value& indices, int dim) {
  const int axis = checked_axis(a, "take_along", dim, a.rank());
  if (indices.rank() != a.rank())
    fail(a, "take_along", "take_along_rank",
         fmt::format("the indices {} and the tensor {} differ in rank", indices.type().to_string(),
                     a.type().to_string()),
         "give indices of the shape of the result");
  if (!is_integer(indices.dtype()))
    fail(a, "take_along", "dtype_kind", fmt::format("the indices are {}, not integers", indices.type().to_string()),
         "cast them to i64");
  GraphBuilder& b = a.builder();
  const Shape table = a.shape(), shape = indices.shape();
  for (int i = 0; i < table.rank(); ++i)
    if (i != axis)
      if (const auto room = (table[i] - shape[i]).value(); !room || *room < 0)
        fail(a, "take_along", "take_along_shape",
             fmt::format("dim {} of the indices {} is not within that of {}", i, indices.type().to_string(),
                         a.type().to_string()),
             "but for the dim taken along, indices are no larger than the tensor");
  const std::vector<Dim> strides = row_major_strides(table);
  const auto scaled = [&](const Value& index, int i) {
    const Dim& stride = strides[static_cast<std::size_t>(i)];
    return stride.is(1) ? index : mul(index, dim_value(b, stride, i64));
  };
  Value position = scaled(cast(indices, i64), axis);
  for (int i = 0; i < table.rank(); ++i) {
    if (i == axis) continue;
    Shape line(std::vector<Dim>(static_cast<std::size_t>(table.rank()), Dim(1)));
    line[i] = shape[i];
    position = add(position, scaled(iota(b, line, i, i64), i));
  }
  return gather(reshape(a, {table.numel()}), position, 0);
}

Value stack(std::span<const Value> parts, int dim) {
  if (parts.empty()) throw UserError("stack: no tensors are given", "op_arity", "give at least one");
  const int axis = checked_axis(parts[0], "stack", dim, parts[0].rank() + 1);
  std::vector<Value> rows;
  for (const Value& part : parts) {
    if (part.shape() != parts[0].shape())
      fail(part, "stack", "stack_shape",
           fmt::format("{} and {} differ in shape", parts[0].type().to_string(), part.type().to_string()),
           "all parts must have one shape; concat joins others along a dim");
    rows.push_back(unsqueeze(part, axis));
  }
  return concat(rows, axis);
}

Value repeat_interleave(const Value& a, std::int64_t times, int dim) {
  const int axis = checked_axis(a, "repeat_interleave", dim, a.rank());
  if (times < 0)
    fail(a, "repeat_interleave", "repeat_times", fmt::format("{} is no number of times", times), "give 0 or more");
  const Shape shape = a.shape();
  std::vector<Dim> wide(shape.begin(), shape.end());
  wide.insert(wide.begin() + axis + 1, Dim(times));
  return flatten(expand(unsqueeze(a, axis + 1), Shape(std::move(wide))), axis, axis + 1);
}

}  // namespace lathe::ir
