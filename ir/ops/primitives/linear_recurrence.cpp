#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

TensorType infer_recurrence(const InferContext& ctx) {
  for (const int operand : {0, 1}) rules::require_kind(ctx, operand, rules::floats);
  const DType dtype = rules::require_same_dtype(ctx);
  const Shape &a = ctx.operand(0).shape, &b = ctx.operand(1).shape;
  const std::string both = fmt::format("{} and {}", rules::describe(ctx, 0), rules::describe(ctx, 1));
  ctx.require(a.rank() == b.rank(), "recurrence_shape", both + " differ in rank",
              "factors and terms have one shape; expand() repeats factors that several terms share");
  Shape shape;
  for (int d = 0; d < a.rank(); ++d) {
    ctx.require_equal(a[d], b[d], "recurrence_shape", fmt::format("{} differ in dim {}", both, d),
                      "factors and terms have one shape; expand() repeats factors that several terms share");
    shape.push_back(rules::one_size(a[d], b[d]));
  }
  ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  return TensorType::contiguous(dtype, shape);
}

HostTensor recurrence_reference(const Node& node, std::span<const HostTensor* const> operands,
                                const std::vector<std::int64_t>& sizes) {
  HostTensor result(operands[0]->dtype(), sizes);
  const Blocks blocks = blocks_of(sizes, dim_of(node, static_cast<int>(sizes.size())));
  const bool reverse = node.attrs.get<bool>("reverse");
  const auto a = operands[0]->as<double>(), b = operands[1]->as<double>();
  const auto to = result.as<double>();
  for (std::int64_t o = 0; o < blocks.outer; ++o)
    for (std::int64_t i = 0; i < blocks.inner; ++i) {
      double state = 0;
      for (std::int64_t t = 0; t < blocks.size; ++t) {
        const std::int64_t position = reverse ? blocks.size - 1 - t : t;
        const auto at = static_cast<std::size_t>((o * blocks.size + position) * blocks.inner + i);
        state = a[at] * state + b[at];
        to[at] = state;
      }
    }
  return result;
}

std::vector<DimPair> recurrence_dims(const Graph&, const Node& node) {
  const int rank = node.type.rank(), d = dim_of(node, rank);
  std::vector<DimPair> pairs;
  for (int i = 0; i < rank; ++i)
    if (i != d) pairs.insert(pairs.end(), {{0, i, i}, {1, i, i}});
  return pairs;
}

/// Moves each element to the next position along dim d, or to the previous one; 0 takes the free place.
Value shifted(const Value& a, int d, bool to_next) {
  const Dim size = a.shape()[d].unnamed();
  return to_next ? ir::slice(ir::pad(a, d, 1, 0), d, 0, size) : ir::slice(ir::pad(a, d, 0, 1), d, 1, size + Dim(1));
}

/// With h[t] = a[t] h[t-1] + b[t]: the gradient with respect to h[t] is the result's plus a[t+1] times that of
/// h[t+1], a recurrence in the other direction. It is also the gradient with respect to b[t], and times h[t-1] that
/// with respect to a[t].
void recurrence_gradient(const GradientContext& g) {
  const int d = dim_of(g.node, g.node.type.rank());
  const bool reverse = g.node.attrs.get<bool>("reverse");
  const Value states = ir::linear_recurrence(shifted(g.operand(0), d, reverse), g.grad, d, !reverse);
  if (g.needs(0)) g.set(0, ir::mul(states, shifted(g.result, d, !reverse)));
  if (g.needs(1)) g.set(1, states);
}

std::vector<Sample> recurrence_samples() {
  const auto sample = [](const std::vector<std::int64_t>& sizes, std::int64_t dim, bool reverse) {
    return Sample{.operands = {{sizes, f64}, {sizes, f64}}, .attrs = {{"dim", dim}, {"reverse", reverse}}};
  };
  return {sample({5}, 0, false),    sample({3, 4}, 1, true),      sample({3, 4}, 0, false),
          sample({4, 3}, 0, true),  sample({2, 3, 4}, -2, false), sample({2, 1}, 1, true),
          sample({2, 6}, 1, false), sample({0, 3}, 0, false),     sample({3, 0}, 0, true)};
}

constexpr AttrSpec recurrence_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the dim of the steps"},
    {"reverse", AttrKind::boolean, false, false, "start at the end: h[t] = a[t] * h[t+1] + b[t]"}};
constexpr std::string_view recurrence_labels[] = {"dtype_kind", "dtype_match", "recurrence_shape", "dim_range"};

}  // namespace

constinit const Op linear_recurrence = {
    .name = "linear_recurrence",
    .doc = "h[t] = a[t] * h[t-1] + b[t] along a dim, from h = 0; the state is computed in f64",
    .arity = Arity{2, 2},
    .attrs = recurrence_attrs,
    .labels = recurrence_labels,
    .infer = infer_recurrence,
    .meaning = Custom{CustomKind::linear_recurrence, recurrence_reference, DimRule(recurrence_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(recurrence_gradient),
    .samples = recurrence_samples,
};

}  // namespace lathe::ir::ops
