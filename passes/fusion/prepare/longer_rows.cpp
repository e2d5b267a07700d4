#include "passes/fusion/prepare/longer_rows.h"

#include <set>

#include "ir/ops/draws.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

using namespace ir;

namespace {

Shape with_rows_of(const Shape& shape, std::int64_t size) {
  Shape longer;
  for (int d = 0; d + 1 < shape.rank(); ++d) longer.push_back(shape[d]);
  longer.push_back(Dim(size));
  return longer;
}

}  // namespace

LongerRows::Kind LongerRows::kind(ValueId id) const {
  const Node& node = graph_[id];
  const Shape& shape = node.type.shape;
  if (has_longer_[id]) return Kind::longer;
  if (shape.rank() == 0 || shape[shape.rank() - 1].is(1)) return Kind::same;
  if (node.op->as<Elementwise>() && !is_draw(*node.op)) return Kind::element_wise;
  if (node.op == &ops::iota) return Kind::iota;
  if (node.op == &ops::expand) {
    const Shape& from = graph_[node.operands[0]].type.shape;
    return from.rank() == 0 || from[from.rank() - 1].is(1) ? Kind::expand : Kind::other;
  }
  return node.op->as<Argument>() && shape.rank() == 1 ? Kind::argument : Kind::other;
}

bool LongerRows::reaches(ValueId id) const {
  if (!graph_[id].op->as<Elementwise>()) return false;
  bool longer = false;
  std::set<int> seen = {id.index};
  std::vector<ValueId> work = {id};
  while (!work.empty()) {
    const ValueId value = work.back();
    work.pop_back();
    const Kind what = kind(value);
    if (what == Kind::other) return false;
    longer = longer || what == Kind::longer;
    if (what != Kind::element_wise) continue;
    for (const ValueId operand : graph_[value].operands)
      if (seen.insert(operand.index).second) work.push_back(operand);
  }
  return longer;
}

Value LongerRows::build(const Rebuilder& to, ValueId id, std::int64_t size) {
  if (const auto found = built_.find(id.index); found != built_.end()) return found->second;
  GraphBuilder& b = to.builder();
  const Node& node = graph_[id];
  const GraphBuilder::At here(b, node.loc);
  const auto one = [&]() -> Value {
    switch (kind(id)) {
      case Kind::same: return to[id];
      case Kind::element_wise: {
        std::vector<Value> operands;
        for (const ValueId operand : node.operands) operands.push_back(build(to, operand, size));
        return b.add(*node.op, operands, node.attrs);
      }
      case Kind::iota:
        return iota(b, with_rows_of(node.type.shape, size), static_cast<int>(node.attrs.get<std::int64_t>("dim")),
                    node.type.dtype);
      case Kind::expand: return expand(to[node.operands[0]], with_rows_of(node.type.shape, size));
      case Kind::argument: return pad(to[id], 0, 0, Dim(size) - node.type.shape[0].unnamed());
      case Kind::longer:
      case Kind::other: break;
    }
    throw InternalError("longer rows of %" + std::to_string(id.index) + " are asked for, and none were said");
  };
  const Value value = one();
  built_.insert_or_assign(id.index, value);
  return value;
}

}  // namespace lathe
