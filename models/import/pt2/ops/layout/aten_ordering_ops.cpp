#include <fmt/core.h>

#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/layout/reduced_dims.h"

/// Ops that order elements, or find the positions of extreme ones.
namespace lathe::pt2 {

namespace {

using Find = Tensor (*)(const Tensor&, DimIndex, Where);

/// Positions of the first extreme elements along an axis; without one, in the row-major order of all elements.
Results position(const OpCall& call, Find find) {
  const Tensor x = comparable(call.tensor(0));
  if (!call.has("dim")) {
    const Tensor at = find(as_vector(x), 0, Where::current());
    return {call.flag("keepdim", false) ? at.reshape(Shape(std::vector<Dim>(x.rank(), Dim(1)))) : at};
  }
  const int axis = axis_argument(call, x.rank());
  if (x.rank() == 0) {
    call.ignore({"keepdim"});
    return {call.graph().zeros({}, i64)};
  }
  const Tensor at = find(x, axis, Where::current());
  return {call.flag("keepdim", false) ? at.unsqueeze(axis) : at};
}
Results argmax_op(const OpCall& call) { return position(call, argmax); }
Results argmin_op(const OpCall& call) { return position(call, argmin); }

/// The operand of an op along an axis; a tensor without dims is one element.
struct Line {
  Tensor x;
  int axis = 0;
  bool is_scalar = false;

  /// Returns a result in the rank of the operand.
  Tensor in_rank(const Tensor& y) const { return is_scalar ? y.reshape({}) : y; }
};
Line line_of(const OpCall& call, int axis) {
  const Tensor x = comparable(call.tensor(0));
  return {x.rank() == 0 ? x.unsqueeze(0) : x, axis, x.rank() == 0};
}

/// Extreme elements along an axis, and their positions. The element at the position has the gradient, also if others
/// equal it.
Results extreme(const OpCall& call, bool is_largest) {
  const Line line = line_of(call, axis_argument(call, call.operand(0).rank()));
  const bool keeps = call.flag("keepdim", false) && !line.is_scalar;
  const auto kept = [&](const Tensor& y) { return keeps ? y : y.squeeze(line.axis); };
  const Tensor at = (is_largest ? argmax(line.x, line.axis) : argmin(line.x, line.axis)).unsqueeze(line.axis);
  Tensor value = is_largest ? line.x.max(line.axis, true) : line.x.min(line.axis, true);
  if (is_float(value.dtype())) value = straight_through(value, take_along(line.x, at, line.axis));
  return {kept(value).to(call.dtype(0)), kept(at)};
}
Results max_along(const OpCall& call) { return extreme(call, true); }
Results min_along(const OpCall& call) { return extreme(call, false); }

/// The values are sorted, also if the program allows any order. Equal elements keep their order.
Results top_k_op(const OpCall& call) {
  call.ignore({"sorted"});
  const Line line = line_of(call, axis_argument(call, call.operand(0).rank(), std::int64_t{-1}));
  const std::vector<Dim> k = call.dims(1, "k");
  if (k.size() != 1) call.fail("k has more than one element", "import_operand");
  const Ranked ranked = top_k(line.x, k[0], line.axis, call.flag("largest", true));
  return {line.in_rank(ranked.values).to(call.dtype(0)), line.in_rank(ranked.indices)};
}

/// The order is stable, also if the program does not require it.
Results sort_op(const OpCall& call) {
  call.ignore({"stable"});
  const Line line = line_of(call, axis_argument(call, call.operand(0).rank(), std::int64_t{-1}));
  const Ranked ranked = sort(line.x, line.axis, call.flag("descending", false));
  return {line.in_rank(ranked.values).to(call.dtype(0)), line.in_rank(ranked.indices)};
}
Results argsort_op(const OpCall& call) {
  call.ignore({"stable"});
  const Line line = line_of(call, axis_argument(call, call.operand(0).rank(), std::int64_t{-1}));
  return {line.in_rank(argsort(line.x, line.axis, call.flag("descending", false)))};
}

}  // namespace

std::span<const OpRecord> aten_ordering_ops() {
  static constexpr OpRecord records[] = {
      aten("argmax", "self", "dim keepdim", argmax_op),
      aten("argmin", "self", "dim keepdim", argmin_op),
      aten("max.dim", "self", "dim keepdim", max_along),
      aten("min.dim", "self", "dim keepdim", min_along),
      aten("topk", "self k", "dim largest sorted", top_k_op),
      aten("sort", "self", "dim descending", sort_op),
      aten("sort.stable", "self", "stable dim descending", sort_op),
      aten("argsort", "self", "dim descending", argsort_op),
      aten("argsort.stable", "self", "stable dim descending", argsort_op),
  };
  return records;
}

}  // namespace lathe::pt2
