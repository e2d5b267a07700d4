#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

TensorType infer_cumsum(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::reals);
  const TensorType& a = ctx.operand(0);
  ctx.axis(ctx.attr<std::int64_t>("dim"), a.rank());
  return TensorType::contiguous(a.dtype, a.shape);
}

template <class T>
void sum_along(const HostTensor& a, HostTensor& result, const Blocks& blocks, bool exclusive, bool reverse) {
  const auto from = a.as<T>();
  const auto to = result.as<T>();
  for (std::int64_t o = 0; o < blocks.outer; ++o)
    for (std::int64_t i = 0; i < blocks.inner; ++i) {
      T sum{};
      for (std::int64_t t = 0; t < blocks.size; ++t) {
        const std::int64_t position = reverse ? blocks.size - 1 - t : t;
        const auto at = static_cast<std::size_t>((o * blocks.size + position) * blocks.inner + i);
        const T before = sum;
        sum += from[at];
        to[at] = exclusive ? before : sum;
      }
    }
}

HostTensor cumsum_reference(const Node& node, std::span<const HostTensor* const> operands,
                            const std::vector<std::int64_t>& sizes) {
  HostTensor result(operands[0]->dtype(), sizes);
  const Blocks blocks = blocks_of(sizes, dim_of(node, static_cast<int>(sizes.size())));
  const bool exclusive = node.attrs.get<bool>("exclusive"), reverse = node.attrs.get<bool>("reverse");
  if (result.dtype() == i64)
    sum_along<std::int64_t>(*operands[0], result, blocks, exclusive, reverse);
  else
    sum_along<double>(*operands[0], result, blocks, exclusive, reverse);
  return result;
}

/// An element contributes to all sums from its own position on, so the gradient sums in the other direction.
void cumsum_gradient(const GradientContext& g) {
  g.set(0, ir::cumsum(g.grad, dim_of(g.node, g.node.type.rank()), g.node.attrs.get<bool>("exclusive"),
                      !g.node.attrs.get<bool>("reverse")));
}

std::vector<Sample> cumsum_samples() {
  const auto sample = [](std::vector<std::int64_t> sizes, std::int64_t dim, bool exclusive, bool reverse,
                         DType dtype = f64) {
    return Sample{.operands = {{std::move(sizes), dtype}},
                  .attrs = {{"dim", dim}, {"exclusive", exclusive}, {"reverse", reverse}}};
  };
  return {sample({5}, 0, false, false),      sample({3, 4}, 1, true, false),    sample({3, 4}, 0, false, true),
          sample({2, 3, 4}, -2, true, true), sample({2, 1}, 1, true, false),    sample({0, 3}, 0, false, false),
          sample({3, 0}, 0, false, false),   sample({4}, 0, false, false, i64), sample({2, 3}, 1, false, true, i32)};
}

constexpr AttrSpec cumsum_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim to sum along"},
    {"exclusive", AttrKind::boolean, false, false, "exclude the element itself"},
    {"reverse", AttrKind::boolean, false, false, "sum from each element to the end instead of from the start"}};
constexpr std::string_view cumsum_labels[] = {"dtype_kind", "dim_range"};

}  // namespace

constinit const Op cumsum = {
    .name = "cumsum",
    .doc = "the running sum along a dim; bf16 and f16 are summed in f32",
    .arity = Arity{1, 1},
    .attrs = cumsum_attrs,
    .labels = cumsum_labels,
    .infer = infer_cumsum,
    .meaning = Custom{CustomKind::cumsum, cumsum_reference, DimRule(dims_beside)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(cumsum_gradient),
    .samples = cumsum_samples,
};

}  // namespace lathe::ir::ops
