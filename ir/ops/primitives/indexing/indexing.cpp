#include <fmt/core.h>

#include <algorithm>
#include <complex>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/indexing/indices.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

// ---- gather: table [.., n, ..], indices [i..] -> [.., i.., ..]

TensorType gather_infer(const InferContext& ctx) {
  require_indices(ctx, 1);
  const TensorType& table = ctx.operand(0);
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), table.rank());
  Shape shape;
  for (int i = 0; i < d; ++i) shape.push_back(table.shape[i]);
  for (const Dim& dim : ctx.operand(1).shape) shape.push_back(dim);
  for (int i = d + 1; i < table.rank(); ++i) shape.push_back(table.shape[i]);
  return TensorType::contiguous(table.dtype, shape);
}

HostTensor gather_reference(const Node& node, Operands operands, const Sizes& sizes) {
  const HostTensor &table = *operands[0], &indices = *operands[1];
  const Blocks blocks = blocks_of(table.shape(), dim_of(node, static_cast<int>(table.rank())));
  HostTensor result(table.dtype(), sizes);
  if (result.numel() == 0) return result;  // nothing is looked up
  for (std::int64_t o = 0; o < blocks.outer; ++o)
    for (std::int64_t k = 0; k < indices.numel(); ++k) {
      const std::int64_t index = checked_index(node, indices, k, blocks.size);
      copy_elements(table, (o * blocks.size + index) * blocks.inner, result, (o * indices.numel() + k) * blocks.inner,
                    blocks.inner);
    }
  return result;
}

std::vector<DimPair> gather_dims(const Graph& graph, const Node& node) {
  const int table = graph[node.operands[0]].type.rank(), indices = graph[node.operands[1]].type.rank();
  const int d = dim_of(node, table);
  std::vector<DimPair> pairs;
  for (int i = 0; i < table; ++i)
    if (i != d) pairs.push_back({0, i, i < d ? i : i - 1 + indices});
  for (int i = 0; i < indices; ++i) pairs.push_back({1, i, d + i});
  return pairs;
}

void gather_gradient(const GradientContext& g) {
  if (!g.needs(0)) return;
  const Shape& shape = g.operand(0).shape();
  const int d = dim_of(g.node, shape.rank());
  g.set(0, ir::scatter_add(g.operand(1), g.grad, shape[d], d));
}

std::vector<Sample> gather_samples() {
  const auto sample = [](Sizes table, Sizes indices, std::int64_t dim, DType dtype = f64, DType index = i64) {
    const auto rank = static_cast<std::int64_t>(table.size());
    const double last = static_cast<double>(table[dim < 0 ? dim + rank : dim] - 1);
    return Sample{.operands = {{std::move(table), dtype}, {std::move(indices), index, 0, last}},
                  .attrs = {{"dim", dim}}};
  };
  return {sample({5, 3}, {4}, 0),          sample({4, 2}, {2, 3}, 0),     sample({2, 5, 2}, {3}, 1),
          sample({2, 4}, {}, -1),          sample({1, 3}, {2}, 0),        sample({3, 2}, {0}, 0),
          sample({3, 0}, {2}, 0),          sample({4}, {3}, 0, f64, i32), sample({4, 2}, {3}, 0, i64),
          sample({4, 2}, {3}, 0, boolean), sample({4, 3}, {2}, 0, i8)};
}

constexpr AttrSpec gather_attrs[] = {
    {"dim", AttrKind::integer, false, std::int64_t{0}, "the dim of the table that the indices address"}};
constexpr std::string_view gather_labels[] = {"index_dtype", "dim_range"};

// ---- scatter_add: indices [i..], updates [.., i.., ..] -> [.., size, ..]

TensorType scatter_infer(const InferContext& ctx) {
  require_indices(ctx, 0);
  rules::require_kind(ctx, 1, rules::numbers);
  const Shape &indices = ctx.operand(0).shape, &updates = ctx.operand(1).shape;
  const int rank = updates.rank() - indices.rank() + 1;
  ctx.require(rank >= 1, "scatter_shape",
              fmt::format("{} has fewer dims than {}", rules::describe(ctx, 1), rules::describe(ctx, 0)),
              "updates have the dims of the indices in place of the dim that is scattered to");
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), rank);
  for (int i = 0; i < indices.rank(); ++i)
    ctx.require_equal(updates[d + i], indices[i], "scatter_shape",
                      fmt::format("dim {} of {} does not match dim {} of {}", d + i, rules::describe(ctx, 1), i,
                                  rules::describe(ctx, 0)),
                      "updates have the dims of the indices in place of the dim that is scattered to");
  Shape shape;
  for (int i = 0; i < d; ++i) shape.push_back(updates[i]);
  shape.push_back(ctx.attr<Dim>("size"));
  for (int i = d + indices.rank(); i < updates.rank(); ++i) shape.push_back(updates[i]);
  rules::require_sizes(ctx, shape);
  return TensorType::contiguous(ctx.operand(1).dtype, shape);
}

template <class T>
void add_blocks(const Node& node, const HostTensor& indices, const HostTensor& updates, HostTensor& result,
                const Blocks& blocks) {
  const auto from = updates.as<T>();
  const auto to = result.as<T>();
  // For empty blocks, one pass suffices to check the indices.
  const std::int64_t outer = blocks.inner == 0 ? std::min<std::int64_t>(blocks.outer, 1) : blocks.outer;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < indices.numel(); ++k) {
      const std::int64_t index = checked_index(node, indices, k, blocks.size);
      for (std::int64_t i = 0; i < blocks.inner; ++i)
        to[(o * blocks.size + index) * blocks.inner + i] += from[(o * indices.numel() + k) * blocks.inner + i];
    }
}

HostTensor scatter_reference(const Node& node, Operands operands, const Sizes& sizes) {
  HostTensor result(operands[1]->dtype(), sizes);
  const Blocks blocks = blocks_of(sizes, dim_of(node, static_cast<int>(sizes.size())));
  if (result.dtype() == i64)
    add_blocks<std::int64_t>(node, *operands[0], *operands[1], result, blocks);
  else if (result.dtype() == c128)
    add_blocks<std::complex<double>>(node, *operands[0], *operands[1], result, blocks);
  else
    add_blocks<double>(node, *operands[0], *operands[1], result, blocks);
  return result;
}

/// Dims of the indices have no pair in the result, because updates are summed over them.
std::vector<DimPair> scatter_dims(const Graph& graph, const Node& node) {
  const int indices = graph[node.operands[0]].type.rank(), rank = node.type.rank();
  const int d = dim_of(node, rank);
  std::vector<DimPair> pairs;
  for (int i = 0; i < rank; ++i)
    if (i != d) pairs.push_back({1, i < d ? i : i - 1 + indices, i});
  return pairs;
}

void scatter_gradient(const GradientContext& g) {
  if (g.needs(1)) g.set(1, ir::gather(g.grad, g.operand(0), dim_of(g.node, g.node.type.rank())));
}

std::vector<Sample> scatter_samples() {
  const auto sample = [](Sizes indices, Sizes updates, std::int64_t size, std::int64_t dim, DType dtype = f64) {
    return Sample{
        .operands = {{std::move(indices), i64, 0, static_cast<double>(size - 1)}, {std::move(updates), dtype}},
        .attrs = {{"size", Dim(size)}, {"dim", dim}}};
  };
  return {sample({4}, {4, 3}, 5, 0),     sample({2, 3}, {2, 3, 2}, 4, 0), sample({3}, {2, 3, 2}, 5, 1),
          sample({}, {2}, 3, -1),        sample({1}, {1, 2}, 1, 0),       sample({0}, {0, 2}, 3, 0),
          sample({4}, {4, 2}, 3, 0, i64)};
}

constexpr AttrSpec scatter_attrs[] = {
    {"size", AttrKind::dim, true, {}, "the size of the dim to scatter to"},
    {"dim", AttrKind::integer, false, std::int64_t{0}, "the position of that dim in the result"}};
constexpr std::string_view scatter_labels[] = {"index_dtype", "dtype_kind", "scatter_shape", "dim_range",
                                               "dim_negative"};

}  // namespace

constinit const Op gather = {
    .name = "gather",
    .doc = "the slices of a table at the given indices (an embedding for dim 0); an index out of range is an error",
    .arity = Arity{2, 2},
    .attrs = gather_attrs,
    .labels = gather_labels,
    .infer = gather_infer,
    .meaning = Custom{CustomKind::gather, gather_reference, DimRule(gather_dims)},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(gather_gradient),
    .samples = gather_samples,
};

constinit const Op scatter_add = {
    .name = "scatter_add",
    .doc = "adds each update, in order, to a tensor of zeros at its index: the transpose of gather",
    .arity = Arity{2, 2},
    .attrs = scatter_attrs,
    .labels = scatter_labels,
    .infer = scatter_infer,
    .meaning = Custom{CustomKind::scatter_add, scatter_reference, DimRule(scatter_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(scatter_gradient),
    .samples = scatter_samples,
};

}  // namespace lathe::ir::ops
