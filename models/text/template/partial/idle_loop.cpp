#include "models/text/template/partial/idle_loop.h"

#include <algorithm>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/namespace.h"

namespace lathe::jinja {

namespace {

/// Returns whether the variable has the same value at the start of each iteration.
bool is_outer(const For& loop, const std::string& name) {
  return std::none_of(loop.scope.begin(), loop.scope.end(),
                      [&](const Load& load) { return load.name == name && load.from != Load::From::inputs; });
}

/// Returns whether an expression is a number without overflow in every iteration, if the first iteration evaluates
/// it.
bool is_small_number(const For& loop, const Expr& expr) {
  if (const auto* literal = std::get_if<Literal>(&expr.node))
    return literal->value.is(Kind::integer) && std::abs(literal->value.integer()) < (1 << 30);
  if (const auto* sum = std::get_if<BinaryExpr>(&expr.node))
    return expr.height < 16 && (sum->op == BinaryOp::add || sum->op == BinaryOp::subtract) &&
           is_small_number(loop, *sum->left) && is_small_number(loop, *sum->right);
  if (const auto* index = std::get_if<Attribute>(&expr.node)) {
    const auto* name = std::get_if<Name>(&index->object->node);
    return name && name->name == "loop" && (index->name == "index" || index->name == "index0");
  }
  const auto* use = std::get_if<FilterUse>(&expr.node);
  const auto* name = use && use->subject ? std::get_if<Name>(&use->subject->node) : nullptr;
  return name && use->name == "length" && use->arguments.positional.empty() && use->arguments.named.empty() &&
         !use->arguments.rest && !use->arguments.named_rest && is_outer(loop, name->name);
}

/// Returns A of `A and B and ..` if it is an attribute of a variable that the loop does not assign.
const Attribute* guard_of(const For& loop, const Expr& test) {
  if (const auto* logical = std::get_if<Logical>(&test.node))
    return logical->is_and ? guard_of(loop, *logical->left) : nullptr;
  const auto* attribute = std::get_if<Attribute>(&test.node);
  const auto* name = attribute ? std::get_if<Name>(&attribute->object->node) : nullptr;
  return name && is_outer(loop, name->name) ? attribute : nullptr;
}

}  // namespace

std::optional<IdleLoop> IdleLoop::find(const For& loop) {
  IdleLoop idle;
  if (!loop.target.items.empty()) return std::nullopt;
  for (const Statement& statement : loop.body) {
    const auto* set = std::get_if<Set>(&statement.node);
    const auto* branches = std::get_if<If>(&statement.node);
    if (set && set->target.items.empty() && set->target.attribute.empty() && is_small_number(loop, *set->value))
      continue;
    const bool one = branches && branches->branches.size() == 1 && branches->otherwise.empty();
    const Attribute* guard = one ? guard_of(loop, *branches->branches.front().first) : nullptr;
    if (!guard) return std::nullopt;
    idle.guards_.push_back(guard);
  }
  return idle;
}

bool IdleLoop::idles(const Interpreter& interpreter) const {
  return std::all_of(guards_.begin(), guards_.end(), [&](const Attribute* guard) {
    const Slot slot = std::get<Name>(guard->object->node).slot;
    const Value& owner = interpreter.frame()->slots[static_cast<std::size_t>(slot.index)];
    const auto* space =
        slot.hops == 0 && owner.is(Kind::object) ? dynamic_cast<const Namespace*>(owner.object()) : nullptr;
    const Value* value = space ? space->find(guard->name) : nullptr;
    return value && value->is(Kind::boolean) && !value->boolean();
  });
}

}  // namespace lathe::jinja
