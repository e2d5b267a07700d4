#include <fmt/core.h>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"

namespace lathe::jinja {

Value Interpreter::eval(const Expr& expr) {
  return located(expr.extent, [&] {
    const Runtime::Level level = runtime_.deeper();
    runtime_.spend(4);
    return std::visit([&](const auto& node) { return eval(node); }, expr.node);
  });
}

Value& Interpreter::variable(Slot slot) {
  Frame* frame = frame_.get();
  for (int i = 0; i < slot.hops; ++i) frame = frame->outer.get();
  return frame->slots[slot.index];
}

void Interpreter::enter(const Scope& scope) {
  runtime_.spend(4 * scope.size());
  for (const Load& load : scope) {
    Value& value = frame_->slots[load.index];
    switch (load.from) {
      case Load::From::argument: break;
      case Load::From::inputs: value = input(load.name); break;
      case Load::From::outer: value = variable(load.outer); break;
      case Load::From::nothing: value = Value::missing(); break;
    }
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const Load& load : scope) frame_->slots[load.index] = Value::missing();
}

Value Interpreter::input(const std::string& name) {
  if (const Value* given = variables_.dict().find(name)) return *given;
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  return functions_[name] = make_function(runtime_, name);
}

Value Interpreter::eval(const Name& name) {
  const Value& value = variable(name.slot);
  if (LoopRecorder* recorder = runtime_.recorder()) recorder->read_variable(name.name, value);
  if (!value.is_missing()) return value;
  runtime_.spend(name.name.size());
  return Value::undefined(fmt::format("{} is undefined", string_repr(name.name)));
}

Value Interpreter::eval(const ListDisplay& list) {
  std::vector<Value> items;
  for (const ExprPtr& item : list.items) items.push_back(eval(item));
  runtime_.spend(items.size() * sizeof(Value));
  return list.tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value Interpreter::eval(const DictDisplay& dict) {
  DictBuilder builder;
  for (const auto& [key, value] : dict.items) {
    Value given = eval(key);
    builder.set(std::move(given), eval(value), runtime_.budget());
    runtime_.spend(2 * sizeof(Value));
  }
  return std::move(builder).finish();
}

Value Interpreter::eval(const Attribute& attribute) {
  return attribute_of(runtime_, eval(attribute.object), attribute.name);
}

Value Interpreter::eval(const Subscript& subscript) {
  LoopRecorder* recorder = runtime_.recorder();
  const auto* name = recorder ? std::get_if<Name>(&subscript.object->node) : nullptr;
  if (name) recorder->expect_item();
  const Value object = eval(subscript.object);
  const Value index = eval(subscript.index);
  if (name) recorder->read_item(name->name, object, index);
  return element_of(runtime_, object, index);
}

Value Interpreter::eval(const SliceExpr& slice) {
  const Value object = eval(slice.object), start = eval(slice.start), stop = eval(slice.stop);
  return slice_of(runtime_, object, start, stop, eval(slice.step));
}

Value Interpreter::eval(const UnaryExpr& node) { return unary(node.op, eval(node.operand)); }

Value Interpreter::eval(const BinaryExpr& node) {
  const Value left = eval(node.left);
  return binary(runtime_, node.op, left, eval(node.right));
}

Value Interpreter::eval(const Not& negation) { return !truth(runtime_, eval(negation.operand)); }

Value Interpreter::eval(const Logical& logical) {
  Value left = eval(logical.left);
  return truth(runtime_, left) == logical.is_and ? eval(logical.right) : left;
}

bool Interpreter::compare(Comparator comparator, const Value& a, const Value& b) {
  Budget& budget = runtime_.budget();
  switch (comparator) {
    case Comparator::equal: return equal(a, b, budget);
    case Comparator::not_equal: return !equal(a, b, budget);
    case Comparator::less: return ordered(Order::less, a, b, budget);
    case Comparator::less_equal: return ordered(Order::less_equal, a, b, budget);
    case Comparator::greater: return ordered(Order::greater, a, b, budget);
    case Comparator::greater_equal: return ordered(Order::greater_equal, a, b, budget);
    case Comparator::in: return contains(runtime_, b, a);
    case Comparator::not_in: return !contains(runtime_, b, a);
  }
  return false;
}

Value Interpreter::eval(const Comparison& comparison) {
  if (runtime_.recorder() && comparison.rest.size() == 1) return compare_recorded(comparison);
  Value left = eval(comparison.first);
  for (const auto& [comparator, operand] : comparison.rest) {
    Value right = eval(operand);
    if (!compare(comparator, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::eval(const Concat& concat) {
  std::vector<Value> parts;
  for (const ExprPtr& part : concat.parts) parts.push_back(eval(part));
  return concatenate(runtime_, parts);
}

Value Interpreter::eval(const Conditional& conditional) {
  if (truth(runtime_, eval(conditional.test))) return eval(conditional.then);
  if (conditional.otherwise) return eval(conditional.otherwise);
  runtime_.budget().spend_reading(conditional.then->extent.begin);
  return Value::undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.",
                  source_.line_of(conditional.then->extent.begin)));
}

Value Interpreter::eval(const FilterUse& use) {
  const Value subject = use.subject ? eval(*use.subject) : filtered_;
  const Arguments given = arguments(use.arguments);
  if (!use.entry) fail_operation(fmt::format("No filter named '{}' found.", use.name));
  return use.entry->apply(runtime_, subject, given);
}

Value Interpreter::eval(const TestUse& use) {
  const Value subject = eval(use.subject);
  const Arguments given = arguments(use.arguments);
  if (!use.entry) fail_operation(fmt::format("No test named '{}' found.", use.name));
  return use.entry->holds(runtime_, subject, given);
}

Value Interpreter::call(const Value& callee, const Arguments& given) {
  require_defined(callee);
  if (!callee.is(Kind::object)) fail_operation(fmt::format("'{}' object is not callable", type_name(callee)));
  return callee.object()->call(runtime_, given);
}

Value Interpreter::eval(const Call& node) {
  const Value callee = eval(node.callee);
  return call(callee, arguments(node.arguments));
}

Arguments Interpreter::arguments(const CallArguments& given) {
  Arguments values;
  for (const ExprPtr& value : given.positional) values.positional.push_back(eval(value));
  for (const auto& [name, value] : given.named) values.named.emplace_back(name, eval(value));
  if (given.rest) {
    const Value rest = eval(given.rest);
    Iterator* items = try_iterate(runtime_, rest);
    if (!items) fail_operation(fmt::format("Value after * must be an iterable, not {}", type_name(rest)));
    for (Value& item : jinja::collect(runtime_, items)) values.positional.push_back(std::move(item));
  }
  if (!given.named_rest) return values;
  const Value rest = eval(given.named_rest);
  if (!rest.is(Kind::dict))
    fail_operation(fmt::format("argument after ** must be a mapping, not {}", type_name(rest)));
  for (const auto& [name, value] : values.named)
    if (rest.dict().find(name)) fail_operation(fmt::format("got multiple values for keyword argument '{}'", name));
  for (const auto& [key, value] : rest.dict().items()) {
    if (!key.is_string()) fail_operation("keywords must be strings");
    runtime_.spend(sizeof(Value));
    values.named.emplace_back(key.string(), value);
  }
  return values;
}

}  // namespace lathe::jinja
