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
    if (call.flag("keepdim", false)) call.fail("the argument keepdim is true without a dim");
    return {find(as_vector(x), 0, Where::current())};
  }
  const int axis = axis_argument(call, x.rank());
  const Tensor at = find(x, axis, Where::current());
  return {call.flag("keepdim", false) ? at.unsqueeze(axis) : at};
}
Results argmax_op(const OpCall& call) { return position(call, argmax); }
Results argmin_op(const OpCall& call) { return position(call, argmin); }

/// Extreme elements along an axis, and their positions.
Results extreme(const OpCall& call, bool is_largest) {
  const Tensor given = call.tensor(0), x = comparable(given);
  const int axis = axis_argument(call, x.rank());
  const bool keeps = call.flag("keepdim", false);
  const Tensor value = is_largest ? x.max(axis, keeps) : x.min(axis, keeps);
  if (!call.reads(1)) return {value.to(given.dtype())};
  const Tensor at = is_largest ? argmax(x, axis) : argmin(x, axis);
  return {value.to(given.dtype()), keeps ? at.unsqueeze(axis) : at};
}
Results max_along(const OpCall& call) { return extreme(call, true); }
Results min_along(const OpCall& call) { return extreme(call, false); }

/// The values are sorted, also if the program allows any order. Equal elements keep their order.
Results top_k_op(const OpCall& call) {
  call.ignore({"sorted"});
  const Tensor given = call.tensor(0), x = comparable(given);
  const std::vector<Dim> k = call.dims(1, "k");
  if (k.size() != 1) call.fail("k has more than one element", "import_operand");
  const Ranked ranked = top_k(x, k[0], axis_argument(call, x.rank(), std::int64_t{-1}), call.flag("largest", true));
  return {ranked.values.to(given.dtype()), ranked.indices};
}

/// The order is stable, also if the program does not require it.
Results sort_op(const OpCall& call) {
  call.ignore({"stable"});
  const Tensor given = call.tensor(0), x = comparable(given);
  const Ranked ranked = sort(x, axis_argument(call, x.rank(), std::int64_t{-1}), call.flag("descending", false));
  return {ranked.values.to(given.dtype()), ranked.indices};
}
Results argsort_op(const OpCall& call) {
  call.ignore({"stable"});
  const Tensor x = comparable(call.tensor(0));
  return {argsort(x, axis_argument(call, x.rank(), std::int64_t{-1}), call.flag("descending", false))};
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
