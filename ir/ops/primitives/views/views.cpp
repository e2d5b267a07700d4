#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/ops/primitives/views/view_record.h"

namespace lathe::ir::ops {

namespace {

using Ints = std::vector<std::int64_t>;
/// Permutes the operand's dims.
TensorType permuted(const TensorType& type, const std::vector<int>& dims) {
  TensorType result{type.dtype, {}, {}};
  for (const int d : dims) {
    result.shape.push_back(type.shape[d]);
    result.strides.push_back(type.strides[d]);
  }
  return result;
}

/// Maps input dim dims[i] to result dim i.
IndexMap permuted_map(const std::vector<int>& dims) {
  IndexMap map{.components = std::vector<IndexMap::Component>(dims.size()), .reshape = false};
  for (std::size_t i = 0; i < dims.size(); ++i) map.components[dims[i]].dim = static_cast<int>(i);
  return map;
}

// ---- transpose

std::vector<int> swapped(const Node& node, int rank) {
  std::vector<int> dims(static_cast<std::size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  const auto at = [&](std::string_view name) {
    return static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>(name), rank));
  };
  std::swap(dims[at("dim0")], dims[at("dim1")]);
  return dims;
}

TensorType transpose_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  std::vector<int> dims(static_cast<std::size_t>(type.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  const auto at = [&](std::string_view name) {
    return static_cast<std::size_t>(ctx.axis(ctx.attr<std::int64_t>(name), type.rank()));
  };
  std::swap(dims[at("dim0")], dims[at("dim1")]);
  return permuted(type, dims);
}

IndexMap transpose_map(const Graph&, const Node& node) { return permuted_map(swapped(node, node.type.rank())); }

void transpose_gradient(const GradientContext& g) {
  const auto dim = [&](std::string_view name) { return static_cast<int>(g.node.attrs.get<std::int64_t>(name)); };
  g.set(0, ir::transpose(g.grad, dim("dim0"), dim("dim1")));
}

std::vector<Sample> transpose_samples() {
  const auto dims = [](std::int64_t a, std::int64_t b) { return Attributes{{"dim0", a}, {"dim1", b}}; };
  return {view_sample({2, 3}, dims(0, 1)),      view_sample({2, 3, 4}, dims(-1, 0)),
          view_sample({1, 3}, dims(0, 1)),      view_sample({0, 3, 2}, dims(1, 2)),
          view_sample({3}, dims(0, 0)),         view_sample({2, 3}, dims(1, 0), i64),
          view_sample({2, 3}, dims(0, 1), c128)};
}

constexpr AttrSpec transpose_attrs[] = {{"dim0", AttrKind::integer, true, {}, "one of the dims to swap"},
                                        {"dim1", AttrKind::integer, true, {}, "the other"}};
constexpr std::string_view axis_labels[] = {"dim_range"};

// ---- permute

TensorType permute_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const auto& dims = ctx.attr<Ints>("dims");
  std::vector<int> order;
  std::vector<bool> seen(static_cast<std::size_t>(type.rank()), false);
  for (const std::int64_t d : dims) order.push_back(ctx.axis(d, type.rank()));
  for (const int d : order) seen[d] = true;
  if (dims.size() != seen.size() || std::find(seen.begin(), seen.end(), false) != seen.end())
    ctx.fail("permute_dims",
             fmt::format("[{}] does not name each dim of {} once", fmt::join(dims, ", "), rules::describe(ctx, 0)),
             fmt::format("give the {} dims in their new order", type.rank()));
  return permuted(type, order);
}

std::vector<int> permutation(const Node& node) {
  std::vector<int> order;
  for (const std::int64_t d : node.attrs.get<Ints>("dims"))
    order.push_back(rules::normalize_axis(d, node.type.rank()));
  return order;
}

IndexMap permute_map(const Graph&, const Node& node) { return permuted_map(permutation(node)); }

void permute_gradient(const GradientContext& g) {
  const std::vector<int> order = permutation(g.node);
  Ints inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<std::int64_t>(i);
  g.set(0, ir::permute(g.grad, inverse));
}

std::vector<Sample> permute_samples() {
  const auto dims = [](Ints order) { return Attributes{{"dims", std::move(order)}}; };
  return {view_sample({2, 3, 4}, dims({2, 0, 1})), view_sample({2, 1, 3}, dims({-1, 1, 0})),
          view_sample({0, 2}, dims({1, 0})), view_sample({}, dims({})), view_sample({2, 2, 2}, dims({1, 2, 0}), i32)};
}

constexpr AttrSpec permute_attrs[] = {
    {"dims", AttrKind::integers, true, {}, "the operand's dims in their new order"}};
constexpr std::string_view permute_labels[] = {"dim_range", "permute_dims"};

// ---- expand

/// Returns the result's size for an operand dim of size `from`; -1 keeps it.
Dim expanded_size(const InferContext& ctx, const Dim& from, const Dim& to) {
  if (to.is(-1)) return from;
  if (!from.is(1))
    ctx.require_equal(from, to, "expand_size",
                      fmt::format("{} cannot expand to {}: {} is not 1", rules::describe(ctx, 0),
                                  ctx.attr<Shape>("shape").to_string(), from.to_string()),
                      "only dims of size 1, or new ones in front, take another size");
  return to.name().empty() && from == to ? from : to;
}

TensorType expand_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const auto& target = ctx.attr<Shape>("shape");
  const int lead = target.rank() - type.rank();
  if (lead < 0)
    ctx.fail("expand_rank", fmt::format("{} has more dims than {}", rules::describe(ctx, 0), target.to_string()),
             "expand keeps every dim and may add dims in front");
  TensorType result{type.dtype, {}, {}};
  for (int i = 0; i < target.rank(); ++i) {
    const Dim from = i < lead ? Dim(1) : type.shape[i - lead];
    ctx.require(i >= lead || !target[i].is(-1), "expand_rank",
                fmt::format("{} gives no size for the new dim {}", target.to_string(), i),
                "-1 keeps an existing size");
    const Dim to = expanded_size(ctx, from, target[i]);
    const bool kept = i >= lead && (!from.is(1) || to.is(1));
    result.shape.push_back(to);
    result.strides.push_back(kept ? type.strides[i - lead] : Dim(0));
  }
  rules::require_sizes(ctx, result.shape);
  return result;
}

IndexMap expand_map(const Graph& graph, const Node& node) {
  const TensorType& type = source(graph, node);
  const int lead = node.type.rank() - type.rank();
  IndexMap map;
  for (int i = 0; i < type.rank(); ++i) {
    const bool repeated = type.shape[i].is(1) && !node.type.shape[i + lead].is(1);
    map.components.push_back({.dim = repeated ? -1 : i + lead, .scale = 1, .offset = 0});
  }
  return map;
}

void expand_gradient(const GradientContext& g) { g.set(0, sum_to(g.grad, g.operand(0).shape())); }

std::vector<Sample> expand_samples() {
  const auto to = [](Shape shape) { return Attributes{{"shape", std::move(shape)}}; };
  return {view_sample({3, 1}, to({3, 4})),    view_sample({2}, to({3, 2})),     view_sample({}, to({2, 2})),
          view_sample({1, 1}, to({1, 1})),    view_sample({1, 2}, to({-1, 2})), view_sample({1, 3}, to({0, 3})),
          view_sample({2, 1}, to({2, 2, 3})), view_sample({0, 1}, to({0, 3})),  view_sample({1}, to({2}), boolean)};
}

constexpr AttrSpec expand_attrs[] = {
    {"shape", AttrKind::shape, true, {}, "the shape of the result; -1 keeps a size"}};
constexpr std::string_view expand_labels[] = {"expand_rank", "expand_size", "dim_negative"};

// ---- unsqueeze and squeeze

TensorType unsqueeze_infer(const InferContext& ctx) {
  TensorType result = ctx.operand(0);
  const int rank = result.rank(), d = ctx.axis(ctx.attr<std::int64_t>("dim"), rank + 1);
  const auto at = static_cast<std::size_t>(d);
  const Dim stride = d < rank ? result.strides[at] * result.shape[d].unnamed() : Dim(1);
  std::vector<Dim> dims = result.shape.dims();
  dims.insert(dims.begin() + d, Dim(1));
  result.shape = Shape(std::move(dims));
  result.strides.insert(at, stride);
  return result;
}

IndexMap unsqueeze_map(const Graph&, const Node& node) {
  const int rank = node.type.rank(), d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank);
  IndexMap map;
  for (int i = 0; i + 1 < rank; ++i) map.components.push_back({.dim = i < d ? i : i + 1, .scale = 1, .offset = 0});
  return map;
}

void unsqueeze_gradient(const GradientContext& g) {
  g.set(0, ir::squeeze(g.grad, static_cast<int>(g.node.attrs.get<std::int64_t>("dim"))));
}

TensorType squeeze_infer(const InferContext& ctx) {
  TensorType result = ctx.operand(0);
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), result.rank());
  ctx.require_equal(
      result.shape[d], 1, "squeeze_size",
      fmt::format("dim {} of {} has size {}, not 1", d, rules::describe(ctx, 0), result.shape[d].to_string()),
      "only a dim of size 1 can go; x.select(dim, index) picks one index of a larger one");
  std::vector<Dim> dims = result.shape.dims();
  dims.erase(dims.begin() + d);
  result.shape = Shape(std::move(dims));
  result.strides.erase(static_cast<std::size_t>(d));
  return result;
}

IndexMap squeeze_map(const Graph& graph, const Node& node) {
  const int rank = source(graph, node).rank(), d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank);
  IndexMap map;
  for (int i = 0; i < rank; ++i)
    map.components.push_back({.dim = i == d ? -1 : (i < d ? i : i - 1), .scale = 1, .offset = 0});
  return map;
}

void squeeze_gradient(const GradientContext& g) {
  const int d = rules::normalize_axis(g.node.attrs.get<std::int64_t>("dim"), g.operand(0).rank());
  g.set(0, ir::unsqueeze(g.grad, d));
}

std::vector<Sample> unsqueeze_samples() {
  const auto at = [](std::int64_t dim) { return Attributes{{"dim", dim}}; };
  return {view_sample({2, 3}, at(1)), view_sample({2, 3}, at(-1)), view_sample({1, 2}, at(0)),
          view_sample({}, at(0)),     view_sample({0}, at(0)),     view_sample({2}, at(1), boolean)};
}

std::vector<Sample> squeeze_samples() {
  const auto at = [](std::int64_t dim) { return Attributes{{"dim", dim}}; };
  return {view_sample({2, 1, 3}, at(1)), view_sample({1}, at(0)), view_sample({2, 1}, at(-1)),
          view_sample({0, 1}, at(1)), view_sample({1, 2}, at(0), i64)};
}

constexpr AttrSpec unsqueeze_attrs[] = {
    {"dim", AttrKind::integer, true, {}, "the position of the new dim in the result"}};
constexpr AttrSpec squeeze_attrs[] = {{"dim", AttrKind::integer, true, {}, "the dim of size 1 to remove"}};
constexpr std::string_view squeeze_labels[] = {"dim_range", "squeeze_size"};

}  // namespace

constinit const Op transpose = view_op("transpose", "swaps two dims without a copy", transpose_attrs, axis_labels,
                                       transpose_infer, transpose_map, transpose_gradient, transpose_samples);

constinit const Op permute = view_op("permute", "permutes the dims without a copy", permute_attrs, permute_labels,
                                     permute_infer, permute_map, permute_gradient, permute_samples);

constinit const Op expand =
    view_op("expand", "repeats dims of size 1, or new leading dims, without a copy", expand_attrs, expand_labels,
            expand_infer, expand_map, expand_gradient, expand_samples);

constinit const Op unsqueeze = view_op("unsqueeze", "inserts a dim of size 1", unsqueeze_attrs, axis_labels,
                                       unsqueeze_infer, unsqueeze_map, unsqueeze_gradient, unsqueeze_samples);

constinit const Op squeeze = view_op("squeeze", "removes a dim of size 1", squeeze_attrs, squeeze_labels,
                                     squeeze_infer, squeeze_map, squeeze_gradient, squeeze_samples);

}  // namespace lathe::ir::ops
