#include "ir/ops/collectives.h"

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

namespace {

Attributes along(const MeshAxis& axis) { return {{"axis", axis.name}, {"ranks", axis.ranks}}; }

Attributes in_blocks(const MeshAxis& axis, int dim, const Dim& outer) {
  Attributes attrs = along(axis);
  attrs.set("dim", static_cast<std::int64_t>(dim));
  attrs.set("outer", outer);
  return attrs;
}

}  // namespace

bool is_collective(const Op& op) {
  const auto* custom = op.as<Custom>();
  return custom && custom->kind == CustomKind::collective;
}

MeshAxis axis_of(const Node& collective) {
  return {collective.attrs.get<std::string>("axis"), collective.attrs.get<std::int64_t>("ranks")};
}

ScalarOp fold_of(const Node& collective) {
  if (collective.op == &ops::reduce_scatter) return ScalarOp::add;
  const auto& combine = collective.attrs.get<std::string>("combine");
  return combine == "sum" ? ScalarOp::add : combine == "max" ? ScalarOp::max : ScalarOp::min;
}

Value mesh_index(GraphBuilder& b, const MeshAxis& axis) { return b.add(ops::mesh_index, {}, along(axis)); }

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

}  // namespace lathe::ir
