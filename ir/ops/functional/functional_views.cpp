#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

namespace {

/// Returns a dim counted from the front, checked, because its size is needed before any rule runs.
int require_axis(const Value& a, int dim, std::string_view op) {
  if (dim < -a.rank() || dim >= a.rank())
    throw UserError(a.builder().location(), op,
                    fmt::format("dim {} is out of range for {}", dim, a.type().to_string()), "dim_range",
                    a.rank() == 0 ? "a scalar has no dims" : fmt::format("use {} to {}", -a.rank(), a.rank() - 1));
  return static_cast<int>(from_front(dim, a.rank()));
}

/// Returns whether `a` already has these sizes and display names.
bool has_shape(const Value& a, const Shape& shape) {
  return std::equal(a.shape().begin(), a.shape().end(), shape.begin(), shape.end(),
                    [](const Dim& x, const Dim& y) { return x == y && x.name() == y.name(); });
}

/// Returns the number of chunks of `size` in `total`, where the last may be smaller; -1 if unknown.
std::int64_t count_pieces(const Dim& total, const Dim& size) {
  const auto number = size.value(), all = total.value();
  if (number && *number <= 0) return -1;
  if (number && all) return *all / *number + (*all % *number != 0 ? 1 : 0);
  const auto whole = total.divided_by(size);
  return whole && whole->value() ? *whole->value() : -1;
}

Value with_dim(const Op& op, const Value& a, std::int64_t dim) { return a.builder().add(op, {a}, {{"dim", dim}}); }

}  // namespace

Value transpose(const Value& a, int dim0, int dim1) {
  return a.builder().add(ops::transpose, {a},
                         {{"dim0", from_front(dim0, a.rank())}, {"dim1", from_front(dim1, a.rank())}});
}

Value permute(const Value& a, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> order = dims;
  for (std::int64_t& d : order)
    if (d < 0 && d >= -a.rank()) d += a.rank();
  return a.builder().add(ops::permute, {a}, {{"dims", std::move(order)}});
}

Value expand(const Value& a, const Shape& shape) {
  return has_shape(a, shape) ? a : a.builder().add(ops::expand, {a}, {{"shape", shape}});
}

Value slice(const Value& a, int dim, const Dim& start, const Dim& stop, std::int64_t step) {
  const int d = require_axis(a, dim, "slice");
  const auto from_end = [&](const Dim& at) {
    if (at.value().value_or(0) >= 0) return at;
    const Dim position = a.shape()[d].unnamed() + at;
    if (position.value().value_or(0) < 0)  // the record would count it from the end once more
      throw UserError(a.builder().location(), "slice",
                      fmt::format("{}:{} is not a range within dim {} of {}", start.to_string(), stop.to_string(), d,
                                  a.type().to_string()),
                      "slice_range", "0 <= start <= stop <= size, where a negative number counts from the end");
    return position;
  };
  return a.builder().add(
      ops::slice, {a},
      {{"dim", std::int64_t{d}}, {"start", from_end(start)}, {"stop", from_end(stop)}, {"step", step}});
}

Value select(const Value& a, int dim, const Dim& index) {
  const int d = require_axis(a, dim, "select");
  const auto number = index.value(), size = a.shape()[d].value();
  if (number && size && (*number < -*size || *number >= *size))
    throw UserError(a.builder().location(), "select",
                    fmt::format("index {} is out of range for dim {} of {}", *number, d, a.type().to_string()),
                    "slice_range", *size == 0 ? "the dim is empty" : fmt::format("use {} to {}", -*size, *size - 1));
  const Dim at = index.value().value_or(0) < 0 ? a.shape()[d].unnamed() + index : index.unnamed();
  return squeeze(slice(a, d, at, at + Dim(1)), d);
}

std::vector<Value> split(const Value& a, const Dim& size, int dim) {
  const int d = require_axis(a, dim, "split");
  const Dim total = a.shape()[d];
  const std::int64_t pieces = count_pieces(total, size);
  if (pieces < 0)
    throw UserError(a.builder().location(), "split",
                    fmt::format("{} cut into pieces of {} along dim {} gives no known number of pieces",
                                a.type().to_string(), size.to_string(), d),
                    "split_size", "give a positive size of which the dim is a known multiple");
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const bool last = i + 1 == pieces;
    parts.push_back(slice(a, d, Dim(i) * size.unnamed(), last ? total.unnamed() : Dim(i + 1) * size.unnamed()));
  }
  return parts;
}

std::vector<Value> chunk(const Value& a, std::int64_t chunks, int dim) {
  const int d = require_axis(a, dim, "chunk");
  const auto size = chunks > 0 ? a.shape()[d].divided_by(chunks) : std::nullopt;
  if (!size)
    throw UserError(a.builder().location(), "chunk",
                    fmt::format("dim {} of {} does not divide into {} chunks", d, a.type().to_string(), chunks),
                    "chunk_size", "split takes a size instead, and lets the last piece be smaller");
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < chunks; ++i) parts.push_back(slice(a, d, Dim(i) * *size, Dim(i + 1) * *size));
  return parts;
}

Value view(const Value& a, const Shape& shape) { return a.builder().add(ops::view, {a}, {{"shape", shape}}); }

Value reshape(const Value& a, const Shape& shape) {
  return has_shape(a, shape) ? a : a.builder().add(ops::reshape, {a}, {{"shape", shape}});
}

Value flatten(const Value& a, int first, int last) {
  const int from = require_axis(a, first, "flatten"), to = require_axis(a, last, "flatten");
  if (from > to)
    throw UserError(a.builder().location(), "flatten", fmt::format("dim {} comes after dim {}", first, last),
                    "flatten_dims", "give the first dim to join, then the last");
  Shape shape;
  Dim joined(1);
  for (int i = 0; i < a.rank(); ++i) {
    if (i < from || i > to) shape.push_back(a.shape()[i]);
    if (i >= from && i <= to) joined = joined * (from == to ? a.shape()[i] : a.shape()[i].unnamed());
    if (i == to) shape.push_back(joined);
  }
  return reshape(a, shape);
}

Value contiguous(const Value& a) { return a.type().is_contiguous() ? a : a.builder().add(ops::contiguous, {a}); }

Value unsqueeze(const Value& a, int dim) { return with_dim(ops::unsqueeze, a, from_front(dim, a.rank() + 1)); }
Value squeeze(const Value& a, int dim) { return with_dim(ops::squeeze, a, from_front(dim, a.rank())); }

Value unfold(const Value& a, int dim, std::int64_t size, std::int64_t step, std::int64_t dilation) {
  return a.builder().add(
      ops::unfold, {a}, {{"dim", from_front(dim, a.rank())}, {"size", size}, {"step", step}, {"dilation", dilation}});
}

Value flip(const Value& a, int dim) {
  const int d = require_axis(a, dim, "flip");
  return a.shape()[d].is(1) ? a : a.builder().add(ops::flip, {a}, {{"dim", std::int64_t{d}}});
}

Value diagonal(const Value& a, int dim0, int dim1) {
  return a.builder().add(ops::diagonal, {a},
                         {{"dim0", from_front(dim0, a.rank())}, {"dim1", from_front(dim1, a.rank())}});
}

}  // namespace lathe::ir
