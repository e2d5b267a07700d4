#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/indexing/indices.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

void require_rank(const InferContext& ctx, int operand, int rank, std::string_view what) {
  ctx.require(ctx.operand(operand).rank() == rank, "grouped_rank",
              fmt::format("{} has {} dims, not {}", rules::describe(ctx, operand), ctx.operand(operand).rank(), rank),
              what);
}

/// Requires offsets to be integers [g + 1].
void require_offsets(const InferContext& ctx, int operand) {
  require_indices(ctx, operand);
  require_rank(ctx, operand, 1, "offsets are [g + 1] integers: where each segment of rows begins, and the last ends");
}

/// Returns the row range [first, second) of segment i of `rows` rows [index_range].
std::pair<std::int64_t, std::int64_t> segment_rows(const Node& node, const HostTensor& offsets, std::int64_t i,
                                                   std::int64_t rows) {
  const auto checked = [&](std::int64_t place, std::int64_t least) {
    const std::int64_t at = offsets.get_int(place);
    if (at < least || at > rows)
      throw UserError(node.loc, node.op->name.value,
                      fmt::format("offset {} at [{}] is out of range for segments of {} rows", at, place, rows),
                      "index_range", fmt::format("use {} to {}: offsets ascend", least, rows));
    return at;
  };
  const std::int64_t first = checked(i, 0);
  return {first, checked(i + 1, first)};
}

/// Computes to[i, j] = sum over t of a[i, t] * b[j, t] with plain loops.
void multiply(const double* a, std::int64_t a_row, std::int64_t a_step, const double* b, std::int64_t b_row,
              std::int64_t b_step, double* to, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t t = 0; t < k; ++t) sum += a[i * a_row + t * a_step] * b[j * b_row + t * b_step];
      to[i * n + j] = sum;
    }
}

// ---- grouped_matmul: x [s, k], offsets [g + 1], g weights [n, k] -> [s, n]

TensorType infer_grouped_matmul(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  require_rank(ctx, 0, 2, "x is [rows, k]");
  require_offsets(ctx, 1);
  const TensorType &x = ctx.operand(0), &first = ctx.operand(2);
  const Dim groups(ctx.arity() - 2);
  ctx.require_equal(ctx.operand(1).shape[0], groups + Dim(1), "grouped_offsets",
                    fmt::format("{} does not mark {} segments", rules::describe(ctx, 1), ctx.arity() - 2),
                    "give one offset more than there are weights");
  for (int i = 2; i < ctx.arity(); ++i) {
    const TensorType& weight = ctx.operand(i);
    ctx.require(weight.dtype == x.dtype, "dtype_match",
                fmt::format("{} and {} differ in dtype", rules::describe(ctx, 0), rules::describe(ctx, i)),
                "cast one of them with .to(dtype)");
    require_rank(ctx, i, 2, "weights are [n, k]");
    ctx.require_equal(weight.shape[1], x.shape[1], "grouped_inner",
                      fmt::format("dim 1 of {} does not match {}", rules::describe(ctx, i), rules::describe(ctx, 0)),
                      "x is [rows, k], weights are [n, k]");
    ctx.require_equal(weight.shape[0], first.shape[0], "grouped_inner",
                      fmt::format("dim 0 of {} does not match {}", rules::describe(ctx, i), rules::describe(ctx, 2)),
                      "all weights have one shape");
  }
  return TensorType::contiguous(x.dtype, {x.shape[0], first.shape[0]});
}

HostTensor grouped_matmul_reference(const Node& node, Operands operands, const Sizes& sizes) {
  HostTensor result(f64, sizes);
  const std::int64_t n = sizes[1], k = operands[0]->shape()[1];
  for (std::size_t g = 0; g + 2 < operands.size(); ++g) {
    const auto [lo, hi] = segment_rows(node, *operands[1], static_cast<std::int64_t>(g), sizes[0]);
    multiply(operands[0]->as<double>().data() + lo * k, k, 1, operands[g + 2]->as<double>().data(), k, 1,
             result.as<double>().data() + lo * n, hi - lo, n, k);
  }
  return result;
}

/// Result columns correspond to the weights' rows. Rows have no pair: the offsets refer to all rows.
std::vector<DimPair> grouped_matmul_dims(const Graph&, const Node& node) {
  std::vector<DimPair> pairs;
  for (int i = 2; i < static_cast<int>(node.operands.size()); ++i) pairs.push_back({i, 0, 1});
  return pairs;
}

/// The gradient of x multiplies by the transposed weights; that of each weight sums over the rows of its segment.
void grouped_matmul_gradient(const GradientContext& g) {
  const auto groups = static_cast<int>(g.operands.size()) - 2;
  if (g.needs(0)) {
    std::vector<Value> transposed;
    for (int i = 0; i < groups; ++i) transposed.push_back(ir::transpose(g.operand(i + 2), 0, 1));
    g.set(0, ir::grouped_matmul(g.grad, g.operand(1), transposed));
  }
  for (int i = 0; i < groups; ++i)
    if (g.needs(i + 2)) g.set(i + 2, ir::segment_outer(g.grad, g.operand(0), g.operand(1), i));
}

// ---- segment_outer: a [s, n], b [s, k], offsets [g + 1] -> [n, k]

TensorType infer_segment_outer(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::floats);
  const TensorType &a = ctx.operand(0), &b = ctx.operand(1);
  ctx.require(a.dtype == b.dtype, "dtype_match",
              fmt::format("{} and {} differ in dtype", rules::describe(ctx, 0), rules::describe(ctx, 1)),
              "cast one of them with .to(dtype)");
  require_rank(ctx, 0, 2, "a is [rows, n]");
  require_rank(ctx, 1, 2, "b is [rows, k]");
  require_offsets(ctx, 2);
  ctx.require_equal(a.shape[0], b.shape[0], "grouped_inner",
                    fmt::format("{} and {} differ in rows", rules::describe(ctx, 0), rules::describe(ctx, 1)),
                    "a is [rows, n], b is [rows, k]");
  const auto segment = ctx.attr<std::int64_t>("segment");
  const std::string missing = fmt::format("{} marks no segment {}", rules::describe(ctx, 2), segment);
  ctx.require(segment >= 0, "grouped_offsets", missing, "segments count from 0");
  ctx.require_at_most(Dim(segment + 2), ctx.operand(2).shape[0], "grouped_offsets", missing,
                      "give one offset more than there are segments");
  return TensorType::contiguous(a.dtype, {a.shape[1], b.shape[1]});
}

HostTensor segment_outer_reference(const Node& node, Operands operands, const Sizes& sizes) {
  HostTensor result(f64, sizes);
  const std::int64_t n = sizes[0], k = sizes[1];
  const auto [lo, hi] =
      segment_rows(node, *operands[2], node.attrs.get<std::int64_t>("segment"), operands[0]->shape()[0]);
  multiply(operands[0]->as<double>().data() + lo * n, 1, n, operands[1]->as<double>().data() + lo * k, 1, k,
           result.as<double>().data(), n, k, hi - lo);
  return result;
}

std::vector<DimPair> segment_outer_dims(const Graph&, const Node&) { return {{0, 1, 0}, {1, 1, 1}}; }

/// Rows outside the segment have a zero gradient.
void segment_outer_gradient(const GradientContext& g) {
  const auto segment = g.node.attrs.get<std::int64_t>("segment");
  const Value own = ir::slice(g.operand(2), 0, Dim(segment), Dim(segment + 2));
  const Value transposed = ir::transpose(g.grad, 0, 1);  // [k, n]
  if (g.needs(0)) g.set(0, ir::grouped_matmul(g.operand(1), own, {&g.grad, 1}));
  if (g.needs(1)) g.set(1, ir::grouped_matmul(g.operand(0), own, {&transposed, 1}));
}

/// Random offsets are rarely ascending, so all offsets of a sample are equal: 0 or the number of rows.
SampleOperand equal_offsets(std::int64_t count, double number, DType dtype = i64) {
  return {{count}, dtype, number, number};
}

std::vector<Sample> grouped_matmul_samples() {
  const auto sample = [](std::int64_t rows, std::int64_t n, std::int64_t k, std::int64_t groups, double at,
                         DType dtype = f64, DType index = i64) {
    Sample made{.operands = {{{rows, k}, dtype}, equal_offsets(groups + 1, at, index)}, .attrs = {}};
    for (std::int64_t i = 0; i < groups; ++i) made.operands.push_back({{n, k}, dtype});
    return made;
  };
  return {sample(4, 3, 2, 2, 0), sample(4, 2, 3, 1, 4), sample(0, 3, 2, 2, 0),          sample(1, 1, 2, 1, 1),
          sample(3, 0, 2, 1, 3), sample(3, 2, 0, 1, 0), sample(5, 2, 3, 3, 2, f32, i32)};
}

std::vector<Sample> segment_outer_samples() {
  const auto sample = [](std::int64_t rows, std::int64_t n, std::int64_t k, std::int64_t groups, double at) {
    return Sample{.operands = {{{rows, n}}, {{rows, k}}, equal_offsets(groups + 1, at)},
                  .attrs = {{"segment", groups - 1}}};
  };
  return {sample(4, 3, 2, 2, 0), sample(4, 2, 3, 1, 4), sample(0, 3, 2, 2, 0), sample(3, 0, 1, 1, 1)};
}

constexpr AttrSpec segment_outer_attrs[] = {
    {"segment", AttrKind::integer, true, {}, "the index of the segment; there is one segment fewer than offsets"}};
constexpr std::string_view grouped_labels[] = {"dtype_kind",   "dtype_match",     "index_dtype",
                                               "grouped_rank", "grouped_offsets", "grouped_inner"};

}  // namespace

constinit const Op grouped_matmul = {
    .name = "grouped_matmul",
    .doc =
        "x [s, k], offsets [g+1] and g weights [n, k]: rows offsets[i] .. offsets[i+1] - 1 times weight i "
        "transposed; other rows are 0",
    .arity = Arity{3, -1},
    .attrs = std::span<const AttrSpec>(),
    .labels = grouped_labels,
    .infer = infer_grouped_matmul,
    .meaning = Custom{CustomKind::grouped_matmul, grouped_matmul_reference, DimRule(grouped_matmul_dims)},
    .precision = MixedPrecision::low_precision,
    .gradient = GradientRule(grouped_matmul_gradient),
    .samples = grouped_matmul_samples,
};

constinit const Op segment_outer = {
    .name = "segment_outer",
    .doc =
        "a [s, n], b [s, k], offsets [g+1] -> [n, k]: a transposed times b, over rows offsets[segment] .. "
        "offsets[segment+1] - 1",
    .arity = Arity{3, 3},
    .attrs = segment_outer_attrs,
    .labels = grouped_labels,
    .infer = infer_segment_outer,
    .meaning = Custom{CustomKind::segment_outer, segment_outer_reference, DimRule(segment_outer_dims)},
    .precision = MixedPrecision::low_precision,
    .gradient = GradientRule(segment_outer_gradient),
    .samples = segment_outer_samples,
};

}  // namespace lathe::ir::ops
