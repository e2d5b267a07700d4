#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "frontend/ops/ops.h"
#include "models/import/ops/sizes/range_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that rearrange the elements of one operand.
namespace lathe::pt2 {

namespace {

/// One size of -1 is inferred. A reshape back to the shape before another one is no op.
Results reshape_op(const OpCall& call) {
  const Tensor x = call.tensor(0), y = x.reshape(Shape(call.dims(1, "the shape")));
  return {op_name(x) == "reshape" && operand_of(x).shape() == y.shape() ? operand_of(x) : y};
}

Results reshape_as(const OpCall& call) { return {call.tensor(0).reshape(call.operand(1).shape())}; }

Results permute_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x.permute(axes_from_front(call, call.integers("dims"), x.rank()))};
}

Results transpose_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int a = axis_argument(call, x.rank(), "dim0"), b = axis_argument(call, x.rank(), "dim1");
  return {x.rank() == 0 ? x : x.transpose(a, b)};
}

/// The transpose of a matrix; tensors of fewer dims stay.
Results transpose_matrix(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x.rank() < 2 ? x : x.transpose(0, 1)};
}
Results reversed(const OpCall& call) {
  const Tensor x = call.tensor(0);
  Ints dims(static_cast<std::size_t>(x.rank()));
  std::iota(dims.rbegin(), dims.rend(), 0);
  return {x.permute(dims)};
}
Results transpose_last(const OpCall& call) { return {call.tensor(0).transpose(-2, -1)}; }
/// The transpose, with the complex conjugate of each element.
Results adjoint(const OpCall& call) {
  const Tensor x = call.tensor(0), y = x.rank() < 2 ? x : x.transpose(-2, -1);
  return {is_complex(x.dtype()) ? conj(y) : y};
}

/// Moves dims to other places; the others stay in order.
Results move_dims(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Ints from = axes_argument(call, "source", x.rank()), to = axes_argument(call, "destination", x.rank());
  if (from.size() != to.size()) call.fail("source and destination differ in number", "import_attribute");
  Ints order(static_cast<std::size_t>(x.rank()), -1), rest;
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  for (int i = 0; i < x.rank(); ++i)
    if (std::ranges::find(from, i) == from.end()) rest.push_back(i);
  auto next = rest.begin();
  for (std::int64_t& dim : order)
    if (dim < 0 && next != rest.end()) dim = *next++;
  return {x.permute(order)};
}

Results unsqueeze_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x.unsqueeze(call.axis(call.integer("dim"), x.rank() + 1))};
}

/// Removes dims of size 1; the others stay. A dim with an unknown size is not 1: the exporter fixes sizes of 1.
Results squeeze_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  if (const auto* dims = call.find<Ints>("dim"); dims && dims->empty()) return {x};
  Ints axes = axes_argument(call, "dim", x.rank());
  std::ranges::sort(axes, std::greater());
  for (const std::int64_t axis : axes)
    if (x.size(static_cast<int>(axis)).is(1)) x = x.squeeze(axis);
  return {x};
}

/// A size of -1 keeps that of the operand. Dims may be added in front.
Results expand_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  call.ignore({"implicit"});
  std::vector<Dim> sizes = call.dims(1, "the shape");
  const int added = static_cast<int>(sizes.size()) - x.rank();
  for (int i = 0; i < x.rank() && added >= 0; ++i) {
    Dim& size = sizes[static_cast<std::size_t>(added + i)];
    if (size.is(-1)) size = x.size(i);
  }
  return {x.expand(Shape(std::move(sizes)))};
}
Results expand_as(const OpCall& call) { return {call.tensor(0).expand(call.operand(1).shape())}; }

Results flatten_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int rank = std::max(x.rank(), 1);
  const int first = call.axis(call.integer("start_dim", 0), rank),
            last = call.axis(call.integer("end_dim", -1), rank);
  if (x.rank() == 0) return {x.reshape({1})};
  return {first == last ? x : x.flatten(first, last)};
}

/// One size of -1 is inferred.
Results unflatten(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank());
  std::vector<Dim> sizes = call.dims(1, "the sizes");
  Dim known = 1;
  for (const Dim& size : sizes)
    if (!size.is(-1)) known = known * size;
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.size(i));
  for (const Dim& size : sizes) {
    const std::optional<Dim> inferred = size.is(-1) ? x.size(axis).divided_by(known) : size;
    if (!inferred)
      call.fail_size(fmt::format("{} is no multiple of {}", x.size(axis).to_string(), known.to_string()),
                     importing::needed_multiple(x.size(axis), known.value().value_or(1)));
    shape.push_back(*inferred);
  }
  for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.size(i));
  return {x.reshape(shape)};
}

/// Returns a size argument of one element, or a fallback.
Dim size_operand(const OpCall& call, std::size_t i, std::string_view name, const Dim& fallback) {
  if (!call.has(i)) return fallback;
  const std::vector<Dim> dims = call.dims(i, name);
  if (dims.size() != 1) call.fail(fmt::format("{} has {} elements, not 1", name, dims.size()), "import_operand");
  return dims[0];
}

Results slice_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank(), std::int64_t{0});
  const std::int64_t step = call.integer("step", 1);
  if (step < 1) call.fail(fmt::format("the step is {}", step), "import_attribute");
  const Dim start = size_operand(call, 1, "start", 0), end = size_operand(call, 2, "end", x.size(axis).unnamed());
  return {importing::sliced(x, axis, start, end, step, call)};
}

Results narrow(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank());
  const Dim start = size_operand(call, 1, "start", 0), length = size_operand(call, 2, "length", 0);
  const Dim first = importing::slice_bound(start, x.size(axis).unnamed(), 0, call);
  return {x.slice(axis, first, first + length)};
}

Results select_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x.select(axis_argument(call, x.rank()), size_operand(call, 1, "index", 0))};
}

Results roll_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  const std::vector<Dim> shifts = call.dims(1, "shifts");
  const Ints dims = call.integers("dims", Ints());
  if (dims.empty() && shifts.size() == 1) return {as_vector(x).roll(shifts[0], 0).reshape(x.shape())};
  if (shifts.size() != dims.size()) call.fail("shifts and dims differ in number", "import_attribute");
  for (std::size_t i = 0; i < dims.size(); ++i) x = x.roll(shifts[i], call.axis(dims[i], x.rank()));
  return {x};
}

/// Windows along a dim.
Results unfold_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {x.unfold(call.axis(call.integer("dimension"), x.rank()),
                   {.size = call.integer("size"), .step = call.integer("step")})};
}

/// Returns the dims in the order of their strides, from the outermost, if they are those of contiguous memory in that
/// order; nothing otherwise.
std::optional<Ints> memory_order(const std::vector<Dim>& sizes, const std::vector<Dim>& strides) {
  Ints order;
  Dim step = 1;
  while (order.size() < sizes.size()) {
    std::size_t next = 0;
    const auto is_next = [&](std::size_t i) {
      const bool is_placed = std::ranges::find(order, static_cast<std::int64_t>(i)) != order.end();
      return !is_placed && (sizes[i].is(1) || strides[i].unnamed() == step);
    };
    while (next < sizes.size() && !is_next(next)) ++next;
    if (next == sizes.size()) return std::nullopt;
    order.push_back(static_cast<std::int64_t>(next));
    step = step * sizes[next].unnamed();
  }
  std::ranges::reverse(order);
  return order;
}

/// The elements of the storage at offset + the sum of index * stride. The operand is all of its storage, in row-major
/// order, which the importer checks. A permutation is a view; others, such as windows that overlap, are lookups.
Results as_strided(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::vector<Dim> sizes = call.dims(1, "the sizes"), strides = call.dims(2, "the strides");
  const Dim offset = size_operand(call, 3, "storage_offset", 0);
  if (sizes.size() != strides.size()) call.fail("sizes and strides differ in number", "import_operand");
  if (const auto order = memory_order(sizes, strides); order && offset.is(0)) {
    Shape memory;
    for (const std::int64_t dim : *order) memory.push_back(sizes[static_cast<std::size_t>(dim)]);
    if (memory.numel().unnamed() == x.shape().numel().unnamed())
      return {x.reshape(memory).permute(inverse_order(*order))};
  }
  Tensor at = call.graph().dim_value(offset);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    at = at.unsqueeze(-1) + call.graph().arange(sizes[i], i64) * call.graph().dim_value(strides[i]);
  return {gather(as_vector(x), at)};
}

}  // namespace

std::span<const OpRecord> aten_view_ops() {
  static constexpr OpRecord records[] = {
      aten("view", "self size", "", reshape_op, Moves::first),
      aten("reshape", "self shape", "", reshape_op, Moves::first),
      aten("_unsafe_view", "self size", "", reshape_op, Moves::first),
      aten("view_as", "self other", "", reshape_as),
      aten("reshape_as", "self other", "", reshape_as),
      aten("permute", "self", "dims", permute_op, Moves::first),
      aten("transpose.int", "self", "dim0 dim1", transpose_op, Moves::first),
      aten("swapaxes", "self", "axis0 axis1",
           [](const OpCall& call) -> Results {
             const Tensor x = call.tensor(0);
             return {x.transpose(axis_argument(call, x.rank(), "axis0"), axis_argument(call, x.rank(), "axis1"))};
           }),
      aten("t", "self", "", transpose_matrix, Moves::first),
      aten("numpy_T", "self", "", reversed, Moves::first),
      aten("mT", "self", "", transpose_last),
      aten("adjoint", "self", "", adjoint),
      aten("mH", "self", "", adjoint),
      aten("movedim.int", "self", "source destination", move_dims),
      aten("movedim.intlist", "self", "source destination", move_dims),
      aten("unsqueeze", "self", "dim", unsqueeze_op, Moves::first),
      aten("squeeze", "self", "", squeeze_op, Moves::first),
      aten("squeeze.dim", "self", "dim", squeeze_op, Moves::first),
      aten("squeeze.dims", "self", "dim", squeeze_op, Moves::first),
      aten("expand", "self size", "implicit", expand_op, Moves::first),
      aten("expand_as", "self other", "", expand_as),
      aten("broadcast_to", "self size", "", expand_op, Moves::first),
      aten("flatten.using_ints", "self", "start_dim end_dim", flatten_op, Moves::first),
      aten("unflatten.int", "self sizes", "dim", unflatten),
      aten("slice.Tensor", "self start end", "dim step", slice_op, Moves::first),
      aten("narrow", "self start length", "dim", narrow, Moves::first),
      aten("select.int", "self index", "dim", select_op, Moves::first),
      aten("as_strided", "self size stride storage_offset", "", as_strided),
      aten("roll", "self shifts", "dims", roll_op),
      aten("unfold", "self", "dimension size step", unfold_op),
  };
  return records;
}

}  // namespace lathe::pt2
