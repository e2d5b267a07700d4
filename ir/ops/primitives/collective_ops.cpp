#include "ir/ops/collectives.h"

#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

constexpr NotDifferentiable after_autodiff{
    "graphs are sharded after differentiation: apply shard to the gradient graph"};
constexpr Replicated added_by_shard{"it is what a graph of one process exchanges with the others"};

// ---- common checks

/// Returns the number of processes along the axis [mesh_ranks]; the axis must have a name [mesh_axis].
Dim require_ranks(const InferContext& ctx) {
  const auto ranks = ctx.attr<std::int64_t>("ranks");
  ctx.require(ranks >= 1, "mesh_ranks", fmt::format("an axis of {} processes", ranks), "a mesh axis has 1 or more");
  ctx.require(!ctx.attr<std::string>("axis").empty(), "mesh_axis", "the mesh axis has no name",
              "give the name that the mesh has, as in axis=\"data\"");
  return Dim(ranks);
}

/// Returns the size of a process's shard of dim `d`, which consists of `outer` blocks sharded over `ranks`
/// [mesh_divide].
Dim require_part(const InferContext& ctx, int d, const Dim& outer, const Dim& ranks) {
  const Dim& size = ctx.operand(0).shape[d];
  const auto part = size.unnamed().divided_by(ranks);
  if (!part || !part->divided_by(outer.unnamed()))
    ctx.fail("mesh_divide",
             fmt::format("dim {} of {} is not {} blocks of a multiple of {}", d, rules::describe(ctx, 0),
                         outer.to_string(), ranks.to_string()),
             "pad it");
  return *part;
}

/// Requires an axis of one process, because otherwise the values of other processes are needed.
void require_alone(const Node& node) {
  const auto ranks = node.attrs.get<std::int64_t>("ranks");
  if (ranks != 1)
    throw UserError(
        node.loc, node.op->name.value,
        fmt::format("the graph is that of one of {} processes along {}", ranks, node.attrs.get<std::string>("axis")),
        "mesh_alone", "run all of them: shard::simulate (docs/distributed.md)");
}

HostTensor alone(const Node& node, Operands operands, const Sizes&) {
  require_alone(node);
  return *operands[0];
}

// ---- mesh_index

TensorType mesh_index_infer(const InferContext& ctx) {
  require_ranks(ctx);
  return TensorType::contiguous(i64, {});
}

HostTensor mesh_index_reference(const Node& node, Operands, const Sizes&) {
  require_alone(node);
  return HostTensor::scalar(0, i64);
}

// ---- all_reduce

TensorType all_reduce_infer(const InferContext& ctx) {
  require_ranks(ctx);
  const auto& combine = ctx.attr<std::string>("combine");
  ctx.require(combine == "sum" || combine == "max" || combine == "min", "mesh_combine",
              fmt::format("values cannot be combined by '{}'", combine), "combine is sum, max or min");
  rules::require_kind(ctx, 0, combine == "sum" ? rules::numbers : rules::reals);
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

// ---- all_gather and reduce_scatter

TensorType all_gather_infer(const InferContext& ctx) {
  const Dim ranks = require_ranks(ctx);
  Shape shape = ctx.operand(0).shape;
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  require_part(ctx, d, ctx.attr<Dim>("outer"), 1);
  shape.set(d, shape[d].unnamed() * ranks);
  return TensorType::contiguous(ctx.operand(0).dtype, shape);
}

TensorType reduce_scatter_infer(const InferContext& ctx) {
  const Dim ranks = require_ranks(ctx);
  rules::require_kind(ctx, 0, rules::numbers);
  Shape shape = ctx.operand(0).shape;
  const int d = ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  shape.set(d, require_part(ctx, d, ctx.attr<Dim>("outer"), ranks));
  return TensorType::contiguous(ctx.operand(0).dtype, shape);
}

// ---- all_to_all

TensorType all_to_all_infer(const InferContext& ctx) {
  const Dim ranks = require_ranks(ctx);
  Shape shape = ctx.operand(0).shape;
  const int from = ctx.axis(ctx.attr<std::int64_t>("split_dim"), shape.rank());
  const int to = ctx.axis(ctx.attr<std::int64_t>("concat_dim"), shape.rank());
  ctx.require(from != to, "mesh_dims", fmt::format("dim {} is both split and joined", from), "name two dims");
  shape.set(from, require_part(ctx, from, 1, ranks));
  shape.set(to, shape[to].unnamed() * ranks);
  return TensorType::contiguous(ctx.operand(0).dtype, shape);
}

// ---- send_recv

TensorType send_recv_infer(const InferContext& ctx) {
  require_ranks(ctx);
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

// ---- samples: an axis of one process, so that a single process can run them

template <class... More>
Attributes on_axis(More... more) {
  return {{"axis", std::string("data")}, {"ranks", std::int64_t{1}}, std::move(more)...};
}
using Entry = Attributes::Entry;

std::vector<Sample> index_samples() { return {{.operands = {}, .attrs = on_axis()}}; }

std::vector<Sample> samples_with(const Attributes& attrs, bool with_scalar) {
  std::vector<Sample> samples;
  for (const Sizes& sizes : {Sizes{2, 3}, Sizes{1, 4}, Sizes{0, 2}})
    samples.push_back({.operands = {{sizes, f64}}, .attrs = attrs});
  samples.push_back({.operands = {{{3, 2}, i64}}, .attrs = attrs});
  if (with_scalar) samples.push_back({.operands = {{{}, f32}}, .attrs = attrs});
  return samples;
}

std::vector<Sample> all_reduce_samples() {
  auto samples = samples_with(on_axis(Entry{"combine", std::string("sum")}), true);
  for (const Sample& sample : samples_with(on_axis(Entry{"combine", std::string("max")}), true))
    samples.push_back(sample);
  return samples;
}
std::vector<Sample> block_samples() {
  return samples_with(on_axis(Entry{"dim", std::int64_t{-1}}, Entry{"outer", Dim(1)}), false);
}
std::vector<Sample> all_to_all_samples() {
  return samples_with(on_axis(Entry{"split_dim", std::int64_t{0}}, Entry{"concat_dim", std::int64_t{1}}), false);
}
std::vector<Sample> send_recv_samples() { return samples_with(on_axis(Entry{"offset", std::int64_t{1}}), true); }

// ---- attributes

constexpr AttrSpec axis_attr = {"axis", AttrKind::text, true, {}, "the mesh axis of the collective"};
constexpr AttrSpec ranks_attr = {"ranks", AttrKind::integer, true, {}, "the number of processes along the axis"};
constexpr AttrSpec index_attrs[] = {axis_attr, ranks_attr};
constexpr AttrSpec all_reduce_attrs[] = {
    axis_attr, ranks_attr, {"combine", AttrKind::text, true, {}, "sum, max or min"}};
constexpr AttrSpec block_attrs[] = {
    axis_attr,
    ranks_attr,
    {"dim", AttrKind::integer, true, {}, "the sharded dim"},
    {"outer", AttrKind::dim, true, {}, "the number of blocks of the dim; a process holds one shard of each block"}};
constexpr AttrSpec all_gather_attrs[] = {
    block_attrs[0],
    block_attrs[1],
    block_attrs[2],
    block_attrs[3],
    {"again", AttrKind::boolean, false, false, "repeats an earlier gather whose result was not kept"}};
constexpr AttrSpec all_to_all_attrs[] = {
    axis_attr,
    ranks_attr,
    {"split_dim", AttrKind::integer, true, {}, "the dim that is split over the processes"},
    {"concat_dim", AttrKind::integer, true, {}, "the dim along which the received parts are concatenated"}};
constexpr AttrSpec send_recv_attrs[] = {
    axis_attr,
    ranks_attr,
    {"offset", AttrKind::integer, true, {}, "the distance to the receiving process along the axis, with wraparound"},
    {"again", AttrKind::boolean, false, false, "repeats an earlier transfer whose result was not kept"}};
constexpr std::string_view index_labels[] = {"mesh_ranks", "mesh_axis"};
constexpr std::string_view all_reduce_labels[] = {"mesh_ranks", "mesh_axis", "mesh_combine", "dtype_kind"};
constexpr std::string_view all_gather_labels[] = {"mesh_ranks", "mesh_axis", "mesh_divide", "dim_range"};
constexpr std::string_view reduce_scatter_labels[] = {"mesh_ranks", "mesh_axis", "mesh_divide", "dim_range",
                                                      "dtype_kind"};
constexpr std::string_view all_to_all_labels[] = {"mesh_ranks", "mesh_axis", "mesh_divide", "dim_range", "mesh_dims"};

constexpr Op collective(std::string_view name, std::string_view doc, std::span<const AttrSpec> attrs,
                        std::span<const std::string_view> labels, TensorType (*infer)(const InferContext&),
                        std::vector<Sample> (*samples)()) {
  return Op{.name = name,
            .doc = doc,
            .arity = Arity{1, 1},
            .attrs = attrs,
            .labels = labels,
            .infer = infer,
            .meaning = Custom{CustomKind::collective, alone, added_by_shard},
            .precision = MixedPrecision::follow,
            .gradient = after_autodiff,
            .samples = samples};
}

}  // namespace

constinit const Op mesh_index = {
    .name = "mesh_index",
    .doc = "the i64 position of the process along a mesh axis",
    .arity = Arity{0, 0},
    .attrs = index_attrs,
    .labels = index_labels,
    .infer = mesh_index_infer,
    .meaning = Custom{CustomKind::collective, mesh_index_reference, added_by_shard},
    .precision = MixedPrecision::follow,
    .gradient = after_autodiff,
    .samples = index_samples,
};

constinit const Op all_reduce = collective("all_reduce", "the values of all processes of a mesh axis, reduced",
                                           all_reduce_attrs, all_reduce_labels, all_reduce_infer, all_reduce_samples);
constinit const Op all_gather = collective("all_gather", "the shards of all processes of a mesh axis, concatenated",
                                           all_gather_attrs, all_gather_labels, all_gather_infer, block_samples);
constinit const Op reduce_scatter =
    collective("reduce_scatter", "the sum of the values of all processes of a mesh axis, sharded over them",
               block_attrs, reduce_scatter_labels, reduce_scatter_infer, block_samples);
constinit const Op all_to_all = collective(
    "all_to_all",
    "splits one dim over the processes of a mesh axis and concatenates the received parts along another dim",
    all_to_all_attrs, all_to_all_labels, all_to_all_infer, all_to_all_samples);
constinit const Op send_recv =
    collective("send_recv", "the value of the process offset places earlier along a mesh axis, with wraparound",
               send_recv_attrs, index_labels, send_recv_infer, send_recv_samples);

}  // namespace lathe::ir::ops
