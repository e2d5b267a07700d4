#include "ir/ops/collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"

namespace lathe::ir {

bool is_collective(const Op& op) {
  const auto* custom = op.as<Custom>();
  return custom && custom->kind == CustomKind::collective;
}

MeshAxis axis_of(const Node& collective) {
  return {collective.attrs.get<std::string>("axis"), collective.attrs.get<std::int64_t>("ranks")};
}

namespace {

/// Indexed by CollectiveKind.
constexpr std::array<const Op*, 5> collectives{&ops::all_reduce, &ops::reduce_scatter, &ops::all_gather,
                                               &ops::all_to_all, &ops::send_recv};

Attributes along(const MeshAxis& axis) { return {{"axis", axis.name}, {"ranks", axis.ranks}}; }

Attributes in_blocks(const MeshAxis& axis, int dim, const Dim& outer) {
  Attributes attrs = along(axis);
  attrs.set("dim", static_cast<std::int64_t>(dim));
  attrs.set("outer", outer);
  return attrs;
}

}  // namespace

CollectiveKind collective_kind(const Op& collective) {
  const auto found = std::find(collectives.begin(), collectives.end(), &collective);
  LATHE_ASSERT(found != collectives.end());
  return static_cast<CollectiveKind>(found - collectives.begin());
}

std::string_view name(CollectiveKind kind) { return collectives[static_cast<std::size_t>(kind)]->name; }

std::int64_t places_on(const Node& node) {
  const std::int64_t ranks = axis_of(node).ranks, offset = node.attrs.get<std::int64_t>("offset") % ranks;
  return offset < 0 ? offset + ranks : offset;
}

ScalarOp fold_of(const Node& collective) {
  if (collective.op == &ops::reduce_scatter) return ScalarOp::add;
  const auto& combine = collective.attrs.get<std::string>("combine");
  return combine == "sum" ? ScalarOp::add : combine == "max" ? ScalarOp::max : ScalarOp::min;
}

Value mesh_index(GraphBuilder& b, const MeshAxis& axis) { return b.add(ops::mesh_index, {}, along(axis)); }
std::string mesh_index_dim(std::string_view axis) { return fmt::format("mesh_index@{}", axis); }

Value all_reduce(const Value& a, const MeshAxis& axis, std::string_view combine) {
  Attributes attrs = along(axis);
  attrs.set("combine", std::string(combine));
  return apply(ops::all_reduce, {a}, std::move(attrs));
}

Value all_gather(const Value& a, const MeshAxis& axis, int dim, const Dim& outer, bool again) {
  Attributes attrs = in_blocks(axis, dim, outer);
  if (again) attrs.set("again", true);
  return apply(ops::all_gather, {a}, std::move(attrs));
}
Value reduce_scatter(const Value& a, const MeshAxis& axis, int dim, const Dim& outer) {
  return apply(ops::reduce_scatter, {a}, in_blocks(axis, dim, outer));
}

Value send_recv(const Value& a, const MeshAxis& axis, std::int64_t offset, bool again) {
  Attributes attrs = along(axis);
  attrs.set("offset", offset);
  if (again) attrs.set("again", true);
  return apply(ops::send_recv, {a}, std::move(attrs));
}

}  // namespace lathe::ir
