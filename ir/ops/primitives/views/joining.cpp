#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

// ---- concat

TensorType concat_infer(const InferContext& ctx) {
  const DType dtype = rules::require_same_dtype(ctx);
  Shape shape = ctx.operand(0).shape;
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  for (int i = 1; i < ctx.arity(); ++i) {
    const Shape& part = ctx.operand(i).shape;
    ctx.require(part.rank() == shape.rank(), "concat_rank",
                fmt::format("{} and {} differ in rank", rules::describe(ctx, 0), rules::describe(ctx, i)),
                "unsqueeze inserts a dim; stack joins along a new one");
    for (int k = 0; k < shape.rank(); ++k)
      if (k != d)
        ctx.require_equal(shape[k], part[k], "concat_shape",
                          fmt::format("{} and {} differ in dim {}: {} and {}", rules::describe(ctx, 0),
                                      rules::describe(ctx, i), k, shape[k].to_string(), part[k].to_string()),
                          fmt::format("only dim {}, along which they are joined, may differ", d));
    shape.set(d, shape[d] + part[d]);
  }
  if (ctx.arity() > 1 && shape[d].value()) shape.set(d, Dim(*shape[d].value()));
  return TensorType::contiguous(dtype, shape);
}

HostTensor concat_reference(const Node& node, Operands operands, const Sizes& sizes) {
  const int d = dim_of(node, static_cast<int>(sizes.size()));
  HostTensor result(operands[0]->dtype(), sizes);
  const Blocks whole = blocks_of(sizes, d);
  std::int64_t start = 0;
  for (const HostTensor* part : operands) {
    const Blocks blocks = blocks_of(part->shape(), d);
    const std::int64_t run = blocks.size * blocks.inner;
    for (std::int64_t o = 0; run > 0 && o < blocks.outer; ++o)
      copy_elements(*part, o * run, result, (o * whole.size + start) * whole.inner, run);
    start += blocks.size;
  }
  return result;
}

/// Parts of equal size are blocks of the concatenated dim.
std::vector<DimPair> concat_dims(const Graph& graph, const Node& node) {
  const int rank = node.type.rank(), joined = dim_of(node, rank);
  const Dim size = graph[node.operands[0]].type.shape[joined];
  bool equal = true;
  for (const ValueId part : node.operands) equal = equal && graph[part].type.shape[joined] == size;
  std::vector<DimPair> pairs;
  for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
    for (int d = 0; d < rank; ++d)
      if (d != joined || equal) pairs.push_back({i, d, d});
  return pairs;
}

void concat_gradient(const GradientContext& g) {
  const int d = dim_of(g.node, g.node.type.rank());
  Dim start(0);
  for (int i = 0; i < static_cast<int>(g.operands.size()); ++i) {
    const Dim stop = start + g.operand(i).shape()[d].unnamed();
    if (g.needs(i)) g.set(i, ir::slice(g.grad, d, start, stop));
    start = stop;
  }
}

std::vector<Sample> concat_samples() {
  const auto sample = [](std::vector<Sizes> parts, std::int64_t dim, DType dtype = f64) {
    Sample result{.operands = {}, .attrs = {{"dim", dim}}};
    for (Sizes& sizes : parts) result.operands.push_back({std::move(sizes), dtype});
    return result;
  };
  return {sample({{2, 3}, {1, 3}}, 0), sample({{2, 1}, {2, 3}, {2, 2}}, -1),
          sample({{2, 2}}, 0),         sample({{0, 2}, {3, 2}}, 0),
          sample({{1}, {1}}, 0),       sample({{2}, {3}}, 0, boolean),
          sample({{2}, {3}}, 0, i8),   sample({{2, 1}, {2, 1}}, 1, c128)};
}

constexpr AttrSpec concat_attrs[] = {{"dim", AttrKind::integer, true, {}, "the dim to concatenate along"}};
constexpr std::string_view concat_labels[] = {"dtype_match", "dim_range", "concat_rank", "concat_shape"};

// ---- pad

TensorType pad_infer(const InferContext& ctx) {
  Shape shape = ctx.operand(0).shape;
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  const Dim low = ctx.attr<Dim>("low"), high = ctx.attr<Dim>("high");
  for (const Dim& size : {low, high})
    rules::require_at_most(ctx, 0, size, "pad_size", fmt::format("a padding of {} is negative", size.to_string()),
                           "slice takes elements away");
  if (!low.is(0) || !high.is(0)) shape.set(d, shape[d].unnamed() + low.unnamed() + high.unnamed());
  return TensorType::contiguous(ctx.operand(0).dtype, shape);
}

HostTensor pad_reference(const Node& node, Operands operands, const Sizes& sizes) {
  const int d = dim_of(node, static_cast<int>(sizes.size()));
  const HostTensor& a = *operands[0];
  HostTensor result(a.dtype(), sizes);
  const Blocks blocks = blocks_of(a.shape(), d), whole = blocks_of(sizes, d);
  const std::int64_t low = node.attrs.get<Dim>("low").value().value();
  const std::int64_t run = blocks.size * blocks.inner;
  for (std::int64_t o = 0; run > 0 && o < blocks.outer; ++o)
    copy_elements(a, o * run, result, (o * whole.size + low) * whole.inner, run);
  return result;
}

/// The operand is a block of the result if the padding on both sides is a multiple of its size.
std::vector<DimPair> pad_dims(const Graph& graph, const Node& node) {
  const Shape& shape = graph[node.operands[0]].type.shape;
  const int padded = dim_of(node, shape.rank());
  const auto whole = [&](std::string_view attr) {
    const Dim size = node.attrs.get<Dim>(attr).unnamed();
    return size.is(0) || (!shape[padded].is(0) && size.divided_by(shape[padded].unnamed()));
  };
  std::vector<DimPair> pairs;
  for (int d = 0; d < shape.rank(); ++d)
    if (d != padded || (whole("low") && whole("high"))) pairs.push_back({0, d, d});
  return pairs;
}

void pad_gradient(const GradientContext& g) {
  const Shape& shape = g.operand(0).shape();
  const int d = dim_of(g.node, shape.rank());
  const Dim low = g.node.attrs.get<Dim>("low");
  g.set(0, ir::slice(g.grad, d, low, low + shape[d].unnamed()));
}

std::vector<Sample> pad_samples() {
  const auto sample = [](Sizes sizes, std::int64_t dim, std::int64_t low, std::int64_t high, DType dtype = f64) {
    return Sample{.operands = {{std::move(sizes), dtype}},
                  .attrs = {{"dim", dim}, {"low", Dim(low)}, {"high", Dim(high)}}};
  };
  return {sample({2, 3}, 1, 1, 2),       sample({2, 3}, 0, 0, 1),   sample({3}, -1, 2, 0),
          sample({1, 2}, 0, 1, 1),       sample({0, 2}, 0, 1, 2),   sample({2, 0}, 0, 1, 0),
          sample({2}, 0, 1, 1, boolean), sample({2}, 0, 1, 1, c128)};
}

constexpr AttrSpec pad_attrs[] = {{"dim", AttrKind::integer, true, {}, "the dim to pad"},
                                  {"low", AttrKind::dim, true, {}, "the number of zeros before the elements"},
                                  {"high", AttrKind::dim, true, {}, "the number of zeros after the elements"}};
constexpr std::string_view pad_labels[] = {"dim_range", "pad_size"};

}  // namespace

constinit const Op concat = {
    .name = "concat",
    .doc = "the operands concatenated along a dim",
    .arity = Arity{1, -1},
    .attrs = concat_attrs,
    .labels = concat_labels,
    .infer = concat_infer,
    .meaning = Custom{CustomKind::concat, concat_reference, DimRule(concat_dims)},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(concat_gradient),
    .samples = concat_samples,
};

constinit const Op pad = {
    .name = "pad",
    .doc = "zeros before and after the elements of a dim",
    .arity = Arity{1, 1},
    .attrs = pad_attrs,
    .labels = pad_labels,
    .infer = pad_infer,
    .meaning = Custom{CustomKind::pad, pad_reference, DimRule(pad_dims)},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(pad_gradient),
    .samples = pad_samples,
};

}  // namespace lathe::ir::ops
