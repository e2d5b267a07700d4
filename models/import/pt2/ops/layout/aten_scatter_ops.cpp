#include <fmt/core.h>

#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/scatter_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that combine elements or rows with updates at indices.
namespace lathe::pt2 {

namespace {

using importing::checked;
using importing::ScatterKind;
using importing::ScatterOptions;

/// Writes row i of a tensor at position index[i] of a dim.
Results index_copy(const OpCall& call) {
  const Tensor x = call.tensor(0), rows = call.tensor(2).to(x.dtype());
  const int axis = axis_argument(call, x.rank());
  const Tensor positions = checked(call.tensor(1).to(i64), x.size(axis).unnamed());
  if (x.rank() == 0) return {rows.reshape({})};
  return {update_rows(x, as_vector(positions), rows, axis)};
}

/// Adds row i of a tensor, times alpha, to the row at index[i] of a dim.
Results index_add(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank());
  const Tensor rows = call.tensor(2) * real_argument(call, "alpha", 1);
  const Tensor positions = as_vector(call.tensor(1));
  if (x.rank() == 0) return {x + rows.sum()};
  const Dim size = x.size(axis).unnamed();
  return {x + scatter_add(checked(positions.to(i64), size), rows, size, axis)};
}

/// The kind that the argument `reduce` names; that of the op without one.
ScatterOptions scatter_options(const OpCall& call, ScatterKind fallback) {
  struct Name {
    std::string_view name;
    ScatterKind kind;
  };
  static constexpr Name names[] = {{"add", ScatterKind::add},           {"sum", ScatterKind::add},
                                   {"multiply", ScatterKind::multiply}, {"prod", ScatterKind::multiply},
                                   {"mean", ScatterKind::mean},         {"amax", ScatterKind::largest},
                                   {"amin", ScatterKind::smallest}};
  if (!call.has("reduce")) return {.kind = fallback};
  const std::string reduce = call.text("reduce", "");
  for (const Name& each : names)
    if (each.name == reduce) return {.kind = each.kind, .includes_self = call.flag("include_self", true)};
  call.fail(fmt::format("the argument reduce is '{}'", reduce), "import_attribute");
}

/// Combines elements with those of a tensor, or with a number.
template <ScatterKind fallback>
Results scatter_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const bool is_number = call.is_number(2);
  const Tensor source = is_number ? operand_as(call, 2, x.dtype()) : call.tensor(2).to(x.dtype());
  const Shape indices = call.operand(1).shape();
  const Tensor updates = is_number || source.rank() == 0 ? source.reshape({}).expand(indices) : source;
  return {importing::scattered_along(call, x, 1, updates, axis_argument(call, x.rank()),
                                     scatter_options(call, fallback))};
}

/// Combines the row at index[i] of a dim with row i of a tensor.
Results index_reduce(const OpCall& call) {
  const Tensor x = call.tensor(0), rows = call.tensor(2).to(x.dtype());
  const int axis = axis_argument(call, x.rank());
  if (x.rank() != rows.rank()) call.fail(fmt::format("rows of rank {}", rows.rank()), "import_operand");
  const auto by_row = [&](const Tensor& a) { return a.rank() == 0 ? a.unsqueeze(0) : a.transpose(0, axis); };
  const Tensor data = by_row(x), positions = checked(as_vector(call.tensor(1)).to(i64), data.size(0).unnamed());
  const Tensor result =
      importing::with_rows(data, positions, by_row(rows), scatter_options(call, ScatterKind::replace));
  return {x.rank() == 0 ? result.reshape({}) : result.transpose(0, axis)};
}

/// Writes one value to the rows at positions of a dim.
Results index_fill(const OpCall& call) {
  const Tensor x = call.tensor(0), value = operand_as(call, 2, x.dtype()).reshape({});
  const int axis = axis_argument(call, x.rank());
  if (x.rank() == 0) return {value};
  const Tensor positions = as_vector(checked(call.tensor(1).to(i64), x.size(axis).unnamed()));
  Shape rows = x.shape();
  rows.set(axis, positions.size(0));
  return {update_rows(x, positions, value.expand(rows), axis)};
}

/// Writes to the elements with row-major numbers, or adds to them.
Results put_op(const OpCall& call) {
  const Tensor x = call.tensor(0), all = as_vector(x);
  const Tensor numbers = as_vector(checked(call.tensor(1).to(i64), all.size(0).unnamed()));
  const bool adds = call.flag("accumulate", false);
  return {importing::with_rows(all, numbers, as_vector(call.tensor(2).to(x.dtype())),
                               {.kind = adds ? ScatterKind::add : ScatterKind::replace})
              .reshape(x.shape())};
}

/// Writes the first elements of the source, in order, where the mask is true.
Results masked_scatter(const OpCall& call) {
  const Tensor mask = call.tensor(1).expand(call.operand(0).shape()), source = as_vector(call.tensor(2));
  const Tensor numbers = cumsum(as_vector(mask).to(i64), 0) - 1;
  const Tensor taken = gather(source, where(as_vector(mask), numbers, 0)).reshape(mask.shape());
  return {where(mask, taken, call.tensor(0))};
}

}  // namespace

std::span<const OpRecord> aten_scatter_ops() {
  static constexpr OpRecord records[] = {
      aten("index_copy", "self index source", "dim", index_copy),
      aten("index_add", "self index source", "dim alpha", index_add),
      aten("index_reduce", "self index source", "dim reduce include_self", index_reduce),
      aten("index_fill.int_Scalar", "self index value", "dim", index_fill),
      aten("index_fill.int_Tensor", "self index value", "dim", index_fill),
      aten("put", "self index source", "accumulate", put_op),
      aten("masked_scatter", "self mask source", "", masked_scatter),
      aten("scatter.src", "self index src", "dim", scatter_op<ScatterKind::replace>),
      aten("scatter.value", "self index value", "dim", scatter_op<ScatterKind::replace>),
      aten("scatter.reduce", "self index src", "dim reduce", scatter_op<ScatterKind::replace>),
      aten("scatter.value_reduce", "self index value", "dim reduce", scatter_op<ScatterKind::replace>),
      aten("scatter_add", "self index src", "dim", scatter_op<ScatterKind::add>),
      aten("scatter_reduce.two", "self index src", "dim reduce include_self", scatter_op<ScatterKind::replace>),
  };
  return records;
}

}  // namespace lathe::pt2
