#include <fmt/core.h>

#include "ir/ops/primitives/views/view_record.h"

namespace lathe::ir::ops {

namespace {

// ---- view

TensorType view_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const Shape shape = rules::resolve_view_shape(ctx, ctx.attr<Shape>("shape"));
  if (auto strides = rules::view_strides(type, shape)) return {type.dtype, shape, std::move(*strides)};
  const Node& node = ctx.operand_node(0);
  const std::string name = node.name.empty() ? type.to_string() : node.name;
  ctx.fail("view_stride",
           fmt::format("{} is strided ({}), so no view of shape {} exists", name,
                       rules::strided_by(ctx.graph(), ctx.operand_id(0)), shape.to_string()),
           "use .contiguous().view(...) or .reshape(...), which copies");
}

/// If the shapes differ only in dims of size 1, maps each other dim to one of the result.
IndexMap view_map(const Graph& graph, const Node& node) {
  const Shape &from = graph[node.operands[0]].type.shape, &to = node.type.shape;
  IndexMap map;
  int d = 0;
  const auto skip_ones = [&] {
    while (d < to.rank() && to[d].is(1)) ++d;
  };
  for (const Dim& size : from) {
    skip_ones();
    if (size.is(1)) {
      map.components.push_back({.dim = -1});
      continue;
    }
    if (d == to.rank() || to[d].unnamed() != size.unnamed()) return {.components = {}, .reshape = true};
    map.components.push_back({.dim = d++});
  }
  skip_ones();
  if (d < to.rank()) return {.components = {}, .reshape = true};
  return map;
}

void view_gradient(const GradientContext& g) { g.set(0, ir::reshape(g.grad, g.operand(0).shape())); }

Attributes to(Shape shape) { return {{"shape", std::move(shape)}}; }

std::vector<Sample> view_samples() {
  return {view_sample({2, 6}, to({2, 2, 3})), view_sample({2, 3}, to({6})),      view_sample({2, 6}, to({-1, 4})),
          view_sample({1}, to({})),           view_sample({}, to({1, 1})),       view_sample({0, 3}, to({3, 0})),
          view_sample({1, 4}, to({2, 1, 2})), view_sample({4}, to({2, 2}), i64), view_sample({4}, to({2, 2}), c128)};
}

// ---- reshape

TensorType reshape_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const Shape shape = rules::resolve_view_shape(ctx, ctx.attr<Shape>("shape"));
  if (auto strides = rules::view_strides(type, shape)) return {type.dtype, shape, std::move(*strides)};
  return TensorType::contiguous(type.dtype, shape);
}

Value reshape_expand(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const Value& a = operands[0];
  const bool shows = rules::view_strides(a.type(), node.type.shape).has_value();
  return ir::view(shows ? a : ir::contiguous(a), node.type.shape);
}

// ---- contiguous

TensorType contiguous_infer(const InferContext& ctx) {
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

void contiguous_gradient(const GradientContext& g) { g.set(0, g.grad); }

std::vector<Sample> contiguous_samples() {
  return {view_sample({2, 3}, {}), view_sample({}, {}),           view_sample({1, 2}, {}),
          view_sample({0, 2}, {}), view_sample({2, 2}, {}, c128), view_sample({3}, {}, i64)};
}

constexpr AttrSpec shape_attrs[] = {
    {"shape", AttrKind::shape, true, {}, "the shape of the result; one size may be -1, which is inferred"}};
constexpr std::string_view view_labels[] = {"view_numel", "view_stride", "view_infer", "dim_negative"};
constexpr std::string_view reshape_labels[] = {"view_numel", "view_infer", "dim_negative"};

}  // namespace

constinit const Op view =
    view_op("view", "the same elements in another shape, without a copy; an error if the strides do not allow it",
            shape_attrs, view_labels, view_infer, view_map, view_gradient, view_samples);

constinit const Op reshape = {
    .name = "reshape",
    .doc = "the same elements in another shape: a view if the strides allow it, otherwise a copy",
    .arity = Arity{1, 1},
    .attrs = shape_attrs,
    .labels = reshape_labels,
    .infer = reshape_infer,
    .meaning = Composite{reshape_expand},
    .precision = MixedPrecision::follow,
    .gradient = FromExpansion{},
    .samples = view_samples,
};

constinit const Op contiguous = {
    .name = "contiguous",
    .doc = "the same tensor in row-major layout; copies a strided tensor",
    .arity = Arity{1, 1},
    .attrs = std::span<const AttrSpec>(),
    .labels = std::span<const std::string_view>(),
    .infer = contiguous_infer,
    .meaning = Elementwise{ScalarOp::cast, [](std::span<const double> x) { return x[0]; }},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(contiguous_gradient),
    .samples = contiguous_samples,
};

}  // namespace lathe::ir::ops
