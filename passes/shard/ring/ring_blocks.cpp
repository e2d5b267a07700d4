#include "passes/shard/ring/ring_blocks.h"

#include <algorithm>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/error.h"
#include "passes/fusion/fusion.h"
#include "passes/shard/local_ops.h"

namespace lathe::shard {

using namespace ir;

RingBlocks::RingBlocks(const Ring& ring, const Rebuilder& to, bool again)
    : ring_(ring), to_(to), again_(again), own_keys_(*ring.keys->keys.divided_by(Dim(ring.axis.ranks))) {}

Shape RingBlocks::shape_with(ValueId id, const Dim& keys) const {
  Shape shape = graph()[id].type.shape;
  const int d = ring_.keys->of(id);
  shape.set(d, *shape[d].unnamed().divided_by(ring_.keys->keys) * keys);
  return shape;
}

Value RingBlocks::at(ValueId id, int step) {
  if (const auto known = values_.find({id, step}); known != values_.end()) return known->second;
  const GraphBuilder::At here(builder(), graph()[id].loc);
  const Value value = compute(id, step);
  LATHE_ASSERT(value.shape().looks_like(shape_with(id, own_keys_)) && value.dtype() == graph()[id].type.dtype);
  values_.insert_or_assign({id, step}, value);
  return value;
}

Value RingBlocks::compute(ValueId id, int step) {
  const Node& node = graph()[id];
  if (ring_.is_inside(id) && node.op == &ops::all_gather) return around(id, step);
  if (!ring_.is_inside(id) && !goes_by_blocks(graph(), *ring_.keys, id)) return take_block(id, step);
  if (node.op == &ops::iota) return iota(id, step);
  if (node.op == &ops::view) return shown_as(at(node.operands[0], step), shape_with(id, own_keys_));
  return same_op(id, step);
}

Value RingBlocks::same_op(ValueId id, int step) {
  const Node& node = graph()[id];
  Attributes attrs = node.attrs;
  if (node.op == &ops::expand || node.op->as<Custom>())
    if (node.op != &ops::random_uniform_at) attrs.set("shape", shape_with(id, own_keys_));
  std::vector<Value> operands;
  for (const ValueId each : node.operands) operands.push_back(operand(each, step));
  return builder().add(*node.op, operands, std::move(attrs));
}

Value RingBlocks::sum_of(ValueId id, int step) {
  const Node& node = graph()[id];
  if (node.op == &ops::reduce_scatter) return at(node.operands[0], step);
  const GraphBuilder::At here(builder(), node.loc);
  std::vector<Value> operands;
  for (const ValueId each : node.operands) operands.push_back(operand(each, step));
  return builder().add(*node.op, operands, node.attrs);
}

Value RingBlocks::around(ValueId gather, int step) {
  if (step == 0) return contiguous(shown_as(to_[graph()[gather].operands[0]], shape_with(gather, own_keys_)));
  return send_recv(at(gather, step - 1), ring_.axis, 1, again_);
}

/// Returns the position along the axis of the process whose keys are present in a step.
Value RingBlocks::process(int step) const {
  const Value own = mesh_index(builder(), ring_.axis);
  if (step == 0) return own;
  const auto before = static_cast<double>(step), round = static_cast<double>(ring_.axis.ranks - step);
  return where(lt(own, before), ir::add(own, round), ir::sub(own, before));
}

Value RingBlocks::iota(ValueId id, int step) {
  const Node& node = graph()[id];
  const int d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
  if (d != ring_.keys->of(id)) return same_op(id, step);
  const Value first = mul(process(step), dim_value(builder(), own_keys_, i64));
  const Value positions = cast(ir::add(ir::iota(builder(), {own_keys_}, 0, i64), first), node.type.dtype);
  Shape along(std::vector<Dim>(static_cast<std::size_t>(node.type.rank()), Dim(1)));
  along.set(d, own_keys_);
  return expand(shown_as(positions, along), shape_with(id, own_keys_));
}

Value RingBlocks::take_block(ValueId id, int step) const {
  const int d = ring_.keys->of(id);
  Shape parts;
  for (int i = 0; i < graph()[id].type.rank(); ++i) {
    if (i == d) parts.push_back(Dim(ring_.axis.ranks));
    parts.push_back(i == d ? own_keys_ : graph()[id].type.shape[i]);
  }
  return gather(shown_as(to_[id], parts), process(step), d);
}

/// Returns `rows` after the views between `from` and value `id`; nothing if `id` does not depend on `from`.
std::optional<Value> RingBlocks::rows_at(ValueId id, ValueId from, const Value& rows) const {
  const Node& node = graph()[id];
  if (id == from) return rows;
  if (!ring_.is_inside(id) || id < from) return std::nullopt;
  std::optional<Value> below;
  for (const ValueId each : node.operands)
    if (!below) below = rows_at(each, from, rows);
  if (!below) return std::nullopt;
  const Shape shape = shape_with(id, Dim(1));
  if (node.op == &ops::view) return shown_as(*below, shape);
  if (!node.op->as<View>() || node.op == &ops::expand) return expand(*below, shape);
  return builder().add(*node.op, {*below}, node.attrs);
}

Value RingBlocks::beside_product(const Value& rows, ValueId from, const RingResult& result) const {
  const Node& node = graph()[result.product];
  const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
  const std::string& own = result.operand == 0 ? roles.lhs : roles.rhs;
  Value beside = *rows_at(node.operands[result.operand], from, rows);
  std::vector<std::int64_t> order;
  for (const char label : roles.out)
    if (const auto at = own.find(label); at != std::string::npos) order.push_back(static_cast<std::int64_t>(at));
  order.push_back(static_cast<std::int64_t>(own.find(roles.contracted())));
  beside = squeeze(permute(beside, order), -1);
  for (int i = 0; i < static_cast<int>(roles.out.size()); ++i)
    if (own.find(roles.out[i]) == std::string::npos) beside = unsqueeze(beside, i);
  return beside;
}

}  // namespace lathe::shard
