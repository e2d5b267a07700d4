#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/derived_ops.h"
#include "models/import/ops/sizes/range_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that add dims to tensors before they join them, or that split a tensor at several places.
namespace lathe::pt2 {

namespace {

/// Returns at least `rank` dims: [n] becomes [1, n], and [m, n] becomes [m, n, 1].
Tensor with_rank(const Tensor& x, int rank) {
  if (rank >= 1 && x.rank() == 0) return with_rank(x.unsqueeze(0), rank);
  if (rank >= 2 && x.rank() == 1) return with_rank(x.unsqueeze(0), rank);
  return rank >= 3 && x.rank() == 2 ? x.unsqueeze(2) : x;
}
template <int rank>
Results at_least(const OpCall& call) {
  Results results;
  for (const Tensor& x : call.tensors()) results.emplace_back(with_rank(x, rank));
  return results;
}

/// The tensors in their common dtype.
std::vector<Tensor> promoted_parts(const OpCall& call) {
  if (call.count() == 0) call.fail("there are no tensors", "import_operand");
  return in_common_dtype(call);
}

Tensor joined(const std::vector<Tensor>& parts, int axis) {
  return parts.size() == 1 ? parts[0] : concat(parts, axis);
}

/// Joins tensors of at least `rank` dims along a dim.
Results stacked(const OpCall& call, int rank, int axis) {
  std::vector<Tensor> parts = promoted_parts(call);
  for (Tensor& part : parts) part = with_rank(part, rank);
  return {joined(parts, axis)};
}
Results horizontal_stack(const OpCall& call) { return stacked(call, 1, call.operand(0).rank() < 2 ? 0 : 1); }
Results vertical_stack(const OpCall& call) { return stacked(call, 2, 0); }
Results depth_stack(const OpCall& call) { return stacked(call, 3, 2); }

/// Vectors are columns.
Results column_stack(const OpCall& call) {
  std::vector<Tensor> parts = promoted_parts(call);
  for (Tensor& part : parts)
    if (part.rank() < 2) part = as_vector(part).unsqueeze(1);
  return {joined(parts, 1)};
}

/// Matrices on the diagonal of a matrix of zeros. A vector is a matrix of one row.
Results block_diagonal(const OpCall& call) {
  std::vector<Tensor> parts = promoted_parts(call);
  Dim columns = 0;
  for (Tensor& part : parts) {
    if (part.rank() > 2) call.fail(fmt::format("a block has {} dims", part.rank()), "import_operand");
    part = with_rank(part, 2);
    columns = columns + part.size(1).unnamed();
  }
  Dim before = 0;
  for (Tensor& part : parts) {
    const Dim own = part.size(1).unnamed();
    part = padded(part, 1, before, columns - before - own, 0);
    before = before + own;
  }
  return {joined(parts, 0)};
}

/// Vectors, each along a dim of its own, in one shape.
std::vector<Tensor> mesh(const OpCall& call) {
  std::vector<Tensor> parts = call.tensors();
  Shape shape;
  for (const Tensor& part : parts) {
    if (part.rank() > 1) call.fail(fmt::format("a tensor of the mesh has {} dims", part.rank()), "import_operand");
    shape.push_back(part.shape().numel());
  }
  const int rank = shape.rank();
  for (int i = 0; i < rank; ++i) {
    Tensor& part = parts[static_cast<std::size_t>(i)];
    part = along_axis(as_vector(part), i, rank).expand(shape);
  }
  return parts;
}

/// With the indexing xy, the first two dims are swapped.
Results mesh_grid(const OpCall& call) {
  const std::string indexing = call.text("indexing", "ij");
  if (indexing != "ij" && indexing != "xy")
    call.fail(fmt::format("the argument indexing is '{}', not ij or xy", indexing), "import_attribute");
  std::vector<Tensor> parts = mesh(call);
  if (indexing == "xy" && parts.size() > 1)
    for (Tensor& part : parts) part = part.transpose(0, 1);
  return {parts.begin(), parts.end()};
}

/// All combinations of the elements of vectors, as rows.
Results cartesian_product(const OpCall& call) {
  if (call.count() == 1) return {call.operand(0)};
  std::vector<Tensor> parts = mesh(call);
  for (Tensor& part : parts) part = as_vector(part);
  return {stack(parts, 1)};
}

/// Slices between places along a dim, which are limited to it.
Results split_at(const OpCall& call, int axis, const std::vector<Dim>& places) {
  const Tensor x = call.tensor(0);
  const Dim size = x.size(axis).unnamed();
  Results parts;
  Dim start = 0;
  for (std::size_t i = 0; i <= places.size(); ++i) {
    const Dim end = i < places.size() ? importing::slice_bound(places[i], size, 0, call) : size;
    const bool is_empty = start.value() && end.value() && *end.value() < *start.value();
    parts.emplace_back(x.slice(axis, start, is_empty ? start : end));
    start = end;
  }
  return parts;
}

/// Parts of sizes that differ by at most 1, larger ones first; with `equal` of one size.
Results split_into(const OpCall& call, int axis, std::int64_t count, bool equal) {
  if (count < 1) call.fail(fmt::format("{} parts", count), "import_attribute");
  const Dim size = call.operand(0).shape()[axis].unnamed();
  std::vector<Dim> places;
  if (const std::optional<Dim> each = size.divided_by(count)) {
    for (std::int64_t i = 1; i < count; ++i) places.push_back(*each * Dim(i));
    return split_at(call, axis, places);
  }
  if (!size.value() || equal)
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {} parts", size.to_string(), count),
                   importing::needed_multiple(size, count));
  const std::int64_t each = *size.value() / count, larger = *size.value() % count;
  for (std::int64_t i = 1; i < count; ++i) places.emplace_back(each * i + std::min(i, larger));
  return split_at(call, axis, places);
}

Results tensor_split(const OpCall& call) {
  const int axis = axis_argument(call, call.operand(0).rank(), std::int64_t{0});
  if (call.operand(1).rank() == 0) return split_into(call, axis, call.integer(1, "the number of parts"), false);
  return split_at(call, axis, call.dims(1, "the places"));
}

/// Splits along the dim `axis`, or the only one.
Results split_along(const OpCall& call, int axis) {
  const int rank = call.operand(0).rank();
  const int along = axis == 1 && rank == 1 ? 0 : axis;
  if (along >= rank) call.fail(fmt::format("a split along dim {} of {} dims", axis, rank), "import_operand");
  if (call.has(1) && call.operand(1).rank() == 0) return split_into(call, along, call.integer(1, "sections"), true);
  return split_at(call, along, call.dims(1, "the places"));
}
Results horizontal_split(const OpCall& call) { return split_along(call, 1); }
Results vertical_split(const OpCall& call) { return split_along(call, 0); }
Results depth_split(const OpCall& call) { return split_along(call, 2); }

}  // namespace

std::span<const OpRecord> aten_stacking_ops() {
  static constexpr OpRecord records[] = {
      aten("atleast_1d", "self", "", at_least<1>),
      aten("atleast_2d", "self", "", at_least<2>),
      aten("atleast_3d", "self", "", at_least<3>),
      aten("atleast_1d.Sequence", "tensors", "", at_least<1>),
      aten("atleast_2d.Sequence", "tensors", "", at_least<2>),
      aten("atleast_3d.Sequence", "tensors", "", at_least<3>),
      aten("hstack", "tensors", "", horizontal_stack),
      aten("vstack", "tensors", "", vertical_stack),
      aten("dstack", "tensors", "", depth_stack),
      aten("column_stack", "tensors", "", column_stack),
      aten("block_diag", "tensors", "", block_diagonal),
      aten("meshgrid", "tensors", "", mesh_grid),
      aten("meshgrid.indexing", "tensors", "indexing", mesh_grid),
      aten("cartesian_prod", "tensors", "", cartesian_product),
      aten("tensor_split.sections", "self sections", "dim", tensor_split),
      aten("tensor_split.indices", "self indices", "dim", tensor_split),
      aten("hsplit.int", "self sections", "", horizontal_split),
      aten("hsplit.array", "self indices", "", horizontal_split),
      aten("vsplit.int", "self sections", "", vertical_split),
      aten("vsplit.array", "self indices", "", vertical_split),
      aten("dsplit.int", "self sections", "", depth_split),
      aten("dsplit.array", "self indices", "", depth_split),
  };
  return records;
}

}  // namespace lathe::pt2
