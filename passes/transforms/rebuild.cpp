#include "passes/transforms/rebuild.h"

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/view_rules.h"

namespace lathe::ir {

Rebuilder::Rebuilder(GraphBuilder& builder, const Graph& from) : builder_(builder), from_(from), map_(from) {}

Value Rebuilder::operator[](ValueId old) const {
  const ValueId found = map_[old];
  LATHE_ASSERT(found.valid());
  return {builder_, found};
}

void Rebuilder::set(ValueId old, const Value& now) {
  LATHE_ASSERT(&now.builder() == &builder_);
  map_[old] = now.id();
  const std::string& name = from_[old].name;
  if (!name.empty()) builder_.set_name(now, name);
}

std::vector<Value> Rebuilder::operands(const Node& node) const {
  std::vector<Value> result;
  result.reserve(node.operands.size());
  for (const ValueId id : node.operands) result.push_back((*this)[id]);
  return result;
}

Value Rebuilder::copy(const Node& node) const {
  std::vector<Value>& now = scratch_;
  now.clear();
  for (const ValueId id : node.operands) now.push_back((*this)[id]);
  bool as_typed = true;
  for (std::size_t i = 0; as_typed && i < now.size(); ++i)
    as_typed = now[i].type().looks_like(from_[node.operands[i]].type);
  if (as_typed) return builder_.copy_as_typed(node, now);
  if (node.op == &ops::view && !rules::view_strides(now[0].type(), node.type.shape)) {
    const GraphBuilder::At at(builder_, node.loc);
    now[0] = contiguous(now[0]);
  }
  return builder_.copy(node, now);
}

void Rebuilder::copy_rest() {
  for (const ValueId id : all_values(from_))
    if (!has(id)) set(id, copy(from_[id]));
}

void Rebuilder::close() const {
  for (const Output& output : from_.outputs) builder_.output(output.name, (*this)[output.value]);
  for (const Update& update : from_.updates) builder_.update((*this)[update.state], (*this)[update.value]);
  builder_.add_checks(from_.checks);
}

Graph rebuild(const Graph& graph, const Rewrite& rewrite) {
  GraphBuilder builder(graph.name);
  builder.add_checks(graph.checks);  // first, because they refer to the ops that the user wrote
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    std::optional<Value> now;
    if (!node.op->as<Argument>()) {
      const GraphBuilder::At at(builder, node.loc);
      now = rewrite(builder, node, to.operands(node));
      if (now) LATHE_ASSERT(now->dtype() == node.type.dtype && now->shape() == node.type.shape);
    }
    to.set(id, now ? *now : to.copy(node));
  }
  to.close();
  return builder.finish();
}

}  // namespace lathe::ir
