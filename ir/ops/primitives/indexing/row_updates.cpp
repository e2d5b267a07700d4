#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/indexing/indices.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

// ---- update_rows: a [.., n, ..], positions [t], [b, t] or [.., t, ..], rows [.., t, ..] -> [.., n, ..]

/// The elements that a position applies to: a row for all [t]; a row per index of dim 0 [b, t]; a single element.
enum class Lists { one, outer, all };

Lists lists_of(int rank, int positions, int d) {
  if (positions == rank && !(rank == 2 && d == 1)) return Lists::all;
  return positions == 1 ? Lists::one : Lists::outer;
}

TensorType infer_update_rows(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals | rules::booleans);
  require_indices(ctx, 1);
  const TensorType &a = ctx.operand(0), &positions = ctx.operand(1), &rows = ctx.operand(2);
  ctx.require(a.dtype == rows.dtype, "dtype_match",
              fmt::format("{} and {} differ in dtype", rules::describe(ctx, 0), rules::describe(ctx, 2)),
              "cast one of them with .to(dtype)");
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank()), rank = positions.rank();
  ctx.require(
      rank == 1 || rank == a.rank() || (rank == 2 && d > 0), "update_rows_positions",
      fmt::format("{} has {} dims for dim {} of {}", rules::describe(ctx, 1), rank, d, rules::describe(ctx, 0)),
      "give positions [t], or [b, t] with one list for each index of the first dim, which is not dim itself, or "
      "positions of the shape of the rows");
  ctx.require(a.rank() == rows.rank(), "update_rows_shape",
              fmt::format("{} and {} differ in rank", rules::describe(ctx, 0), rules::describe(ctx, 2)),
              "rows have the dims of what is updated, but for the number of rows");
  const auto same = [&](const Dim& x, const Dim& y, int operand, int i) {
    ctx.require_equal(
        x, y, "update_rows_shape",
        fmt::format("dim {} of {} does not fit {}", i, rules::describe(ctx, 2), rules::describe(ctx, operand)),
        "rows are [.., t, ..] for positions [t], [b, t] or [.., t, ..]");
  };
  for (int i = 0; i < a.rank(); ++i)
    if (i != d) same(rows.shape[i], a.shape[i], 0, i);
  if (lists_of(a.rank(), rank, d) == Lists::all) {
    for (int i = 0; i < rank; ++i) same(rows.shape[i], positions.shape[i], 1, i);
  } else {
    same(rows.shape[d], positions.shape[rank - 1], 1, d);
    if (rank == 2) same(rows.shape[0], positions.shape[0], 1, 0);
  }
  return TensorType::contiguous(a.dtype, a.shape);
}

HostTensor update_rows_reference(const Node& node, Operands operands, const Sizes& sizes) {
  const HostTensor &positions = *operands[1], &rows = *operands[2];
  HostTensor result = *operands[0];
  if (rows.numel() == 0) return result;
  const int rank = static_cast<int>(sizes.size()), d = dim_of(node, rank);
  const Lists lists = lists_of(rank, static_cast<int>(positions.rank()), d);
  const Blocks blocks = blocks_of(sizes, d);
  const std::int64_t count = rows.shape()[d];
  const std::int64_t outer_per_list = lists == Lists::outer ? blocks.outer / positions.shape()[0] : blocks.outer;
  const std::int64_t width = lists == Lists::all ? 1 : blocks.inner;  // elements moved per position
  for (std::int64_t o = 0; o < blocks.outer; ++o)
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = 0; i < blocks.inner; i += width) {
        const std::int64_t from = (o * count + t) * blocks.inner + i;
        const std::int64_t position = lists == Lists::all ? from : o / outer_per_list * count + t;
        const std::int64_t at = checked_index(node, positions, position, blocks.size);
        copy_elements(rows, from, result, (o * blocks.size + at) * blocks.inner + i, width);
      }
  return result;
}

std::vector<DimPair> update_rows_dims(const Graph& graph, const Node& node) {
  const int rank = node.type.rank(), d = dim_of(node, rank);
  std::vector<DimPair> pairs;
  for (int i = 0; i < rank; ++i)
    if (i != d) pairs.insert(pairs.end(), {{0, i, i}, {2, i, i}});
  const int positions = graph[node.operands[1]].type.rank();
  const Lists lists = lists_of(rank, positions, d);
  if (lists == Lists::outer) pairs.push_back({1, 0, 0});
  for (int i = 0; lists == Lists::all && i < rank; ++i)
    if (i != d) pairs.push_back({1, i, i});
  return pairs;
}

/// Reshapes positions [t] or [b, t] to [.., t, ..], with the rank of the updated operand and ones elsewhere.
Value spread(const Value& positions, const Shape& rows, int d) {
  if (lists_of(rows.rank(), positions.rank(), d) == Lists::all) return positions;
  Shape shape(std::vector<Dim>(static_cast<std::size_t>(rows.rank()), Dim(1)));
  shape.set(d, rows[d]);
  if (positions.rank() == 2) shape.set(0, rows[0]);
  return ir::reshape(positions, shape);
}

/// Returns a bool of the positions' shape: no later position along dim d is equal. Records the last writer of each
/// position; each position then checks whether it is that writer.
Value is_last(const Value& positions, const Dim& size, int d) {
  GraphBuilder& b = positions.builder();
  Shape noted = positions.shape();
  noted.set(d, size.unnamed());
  const Value writer = ir::iota(b, positions.shape(), d, i64);
  const Value last = ir::scatter(ir::full(b, noted, 0, i64), positions, writer, d);
  return ir::eq(ir::take_along(last, positions, d), writer);
}

/// Overwritten elements have no gradient: the old rows, and all but the last row for one position.
void update_rows_gradient(const GradientContext& g) {
  const Value &positions = g.operand(1), &rows = g.operand(2);
  const int rank = g.node.type.rank(), d = dim_of(g.node, rank);
  if (g.needs(0))
    g.set(0, ir::update_rows(g.grad, positions, ir::full(g.builder, rows.shape(), 0, g.grad.dtype()), d));
  if (!g.needs(2)) return;
  const bool all = lists_of(rank, positions.rank(), d) == Lists::all;
  const Value index = ir::expand(spread(positions, rows.shape(), d), rows.shape());
  const Value last = is_last(positions, g.node.type.shape[d], all ? d : positions.rank() - 1);
  g.set(2, ir::where(spread(last, rows.shape(), d), ir::take_along(g.grad, index, d), 0.0));
}

std::vector<Sample> update_rows_samples() {
  const auto sample = [](Sizes a, Sizes positions, std::int64_t dim, DType dtype = f64, DType index = i64) {
    const auto rank = static_cast<std::int64_t>(a.size());
    const auto d = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
    Sizes rows = a;
    rows[d] = positions.back();
    const double last = static_cast<double>(a[d] - 1);
    return Sample{
        .operands = {{std::move(a), dtype}, {std::move(positions), index, 0, last}, {std::move(rows), dtype}},
        .attrs = {{"dim", dim}}};
  };
  /// One position per element of `count` rows.
  const auto each = [&](Sizes a, std::int64_t count, std::int64_t dim, DType dtype = f64, DType index = i64) {
    Sample made = sample(std::move(a), {count}, dim, dtype, index);
    made.operands[1].sizes = made.operands[2].sizes;
    return made;
  };
  return {sample({5, 3}, {2}, 0),
          sample({2, 5, 2}, {3}, 1),
          sample({2, 4, 3}, {2, 2}, 1),
          sample({3, 2, 5, 2}, {3, 1}, 2),
          sample({3, 4}, {3, 2}, -1),
          sample({4}, {6}, 0, f64, i32),
          sample({4, 2}, {0}, 0),
          sample({3, 0}, {2}, 0),
          sample({4, 2}, {3}, 0, i64),
          sample({2, 4}, {2, 3}, 1, boolean),
          each({4, 3}, 2, 0),
          each({2, 4, 3}, 5, 1),
          each({2, 3, 4}, 3, -1),
          each({3, 2}, 0, 0),
          each({2, 4, 2}, 3, 1, f64, i32)};
}

constexpr AttrSpec update_rows_attrs[] = {
    {"dim", AttrKind::integer, false, std::int64_t{0}, "the dim whose rows are replaced"}};
constexpr std::string_view update_rows_labels[] = {"dtype_kind", "index_dtype",           "dtype_match",
                                                   "dim_range",  "update_rows_positions", "update_rows_shape"};

}  // namespace

constinit const Op update_rows = {
    .name = "update_rows",
    .doc =
        "the first operand with rows replaced at positions [t], or [b, t] per index of dim 0, or with elements "
        "replaced at positions of the rows' shape; if positions repeat, the last wins",
    .arity = Arity{3, 3},
    .attrs = update_rows_attrs,
    .labels = update_rows_labels,
    .infer = infer_update_rows,
    .meaning = Custom{CustomKind::update_rows, update_rows_reference, DimRule(update_rows_dims)},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(update_rows_gradient),
    .samples = update_rows_samples,
};

}  // namespace lathe::ir::ops
