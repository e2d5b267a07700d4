#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/functions.h"
#include "models/text/template/loop.h"
#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"

namespace lathe::jinja {

void Interpreter::execute() {
  frame_ = std::make_shared<Frame>();
  frame_->slots.assign(static_cast<std::size_t>(program_.main.size), Value::missing());
  enter(program_.main.scope);
  run(program_.main.body);
}

Rendered Interpreter::run() {
  execute();
  return {std::move(root_), std::move(assistant_)};
}

Interpreter::Flow Interpreter::run(const Block& block) {
  for (const Statement& statement : block) {
    const Flow flow = located(statement.extent, [&] {
      const Runtime::Level level = runtime_.deeper();
      runtime_.spend(4);
      return std::visit([&](const auto& node) { return run(node); }, statement.node);
    });
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

void Interpreter::write(std::string_view text) {
  runtime_.spend(text.size());
  *out_ += text;
  check_output();
}

void Interpreter::skip_output(std::size_t bytes) {
  skipped_ += bytes;
  check_output();
}

void Interpreter::check_output() const {
  if (out_->size() + (out_ == &root_ ? skipped_ : 0) > options_.limits.output)
    fail_limit(fmt::format("the template writes more than {} bytes", options_.limits.output),
               "RenderLimits::output sets how many it may");
}

Interpreter::Flow Interpreter::run(const TextStatement& text) {
  write(text.text);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Print& print) {
  const Value value = eval(*print.value);
  located(print.value->extent, [&] { write(to_text(runtime_, value)); });
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const If& branches) {
  for (const auto& [test, body] : branches.branches) {
    const Value value = eval(*test);
    if (located(test->extent, [&] { return truth(runtime_, value); })) return run(body);
  }
  return run(branches.otherwise);
}

Interpreter::Flow Interpreter::run(const For& loop) {
  const Value iterable = eval(*loop.iterable);
  Loop* items = located(loop.iterable->extent, [&] {
    Iterator* all = iterate(runtime_, iterable);
    if (!loop.condition) return runtime_.make<Loop>(all, iterable);
    return runtime_.make<Loop>(runtime_.make<FilteredItems>(*this, loop, frame_, all), Value());
  });
  LoopWatcher* watcher = watcher_ && watcher_->watches(loop) ? watcher_ : nullptr;
  if (watcher) watcher->enter(loop, *items, iterable);
  bool completed = false;
  while (items->advance(runtime_)) {
    if (watcher) watcher->before_iteration();
    located(loop.target.extent, [&] { assign(loop.target, items->current()); });
    variable(loop.loop) = items;
    enter(loop.scope);
    const Flow flow = run(loop.body);
    if (flow == Flow::break_loop) {
      if (watcher) watcher->breaks();
      break;
    }
    // As in Jinja, {% else %} runs unless the body ran to its end for some item.
    if (flow == Flow::normal) completed = true;
    runtime_.spend(4);
    if (watcher) watcher->after_iteration();
  }
  if (watcher) watcher->leave();
  leave(loop.scope);
  if (completed || loop.otherwise.empty()) return Flow::normal;
  enter(loop.otherwise_scope);
  const Flow flow = run(loop.otherwise);
  leave(loop.otherwise_scope);
  return flow;
}

Interpreter::Flow Interpreter::run(const Set& set) {
  located(set.target.extent, [&] { check_namespaces(set.target); });
  const Value value = eval(*set.value);
  located(set.target.extent, [&] { assign(set.target, value); });
  return Flow::normal;
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    Namespace& space = namespace_of(target);
    if (LoopRecorder* recorder = runtime_.recorder()) recorder->write_attribute(space, target.attribute, value);
    return space.set(target.attribute, value);
  }
  if (target.items.empty()) {
    variable(target.name.slot) = value;
    return;
  }
  Iterator* items = try_iterate(runtime_, value);
  if (!items) fail_operation(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  const std::size_t wanted = target.items.size();
  std::vector<Value> given;
  for (Value next = items->next(runtime_); !next.is_missing(); next = items->next(runtime_)) {
    if (given.size() == wanted) fail_operation(fmt::format("too many values to unpack (expected {})", wanted));
    given.push_back(std::move(next));
  }
  if (given.size() < wanted)
    fail_operation(fmt::format("not enough values to unpack (expected {}, got {})", wanted, given.size()));
  for (std::size_t i = 0; i < wanted; ++i) assign(target.items[i], given[i]);
}

Namespace& Interpreter::namespace_of(const Target& target) {
  const Value& owner = variable(target.name.slot);
  auto* space = owner.is(Kind::object) ? dynamic_cast<Namespace*>(owner.object()) : nullptr;
  if (!space) fail_operation("cannot assign attribute on non-namespace object");
  return *space;
}

void Interpreter::check_namespaces(const Target& target) {
  for (const Target& item : target.items) check_namespaces(item);
  if (!target.attribute.empty()) namespace_of(target);
}

Interpreter::Flow Interpreter::collect(const Block& block, std::string& text) {
  const Restore<std::string*> redirect(out_, &text);
  return run(block);
}

Interpreter::Flow Interpreter::run(const SetBlock& set) {
  std::string text;
  enter(set.scope);
  const Flow flow = collect(set.body, text);
  leave(set.scope);
  if (flow != Flow::normal) return flow;
  Value value(std::move(text));
  if (set.filters) {
    const Restore<Value> subject(filtered_, value);
    value = eval(*set.filters);
  }
  located(set.target.extent, [&] { assign(set.target, value); });
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const FilterBlock& filter) {
  std::string text;
  enter(filter.scope);
  const Flow flow = collect(filter.body, text);
  if (flow == Flow::normal) {
    const Restore<Value> subject(filtered_, Value(std::move(text)));
    write(to_text(runtime_, eval(*filter.filters)));
  }
  leave(filter.scope);
  return flow;
}

Interpreter::Flow Interpreter::run(const With& with) {
  // Evaluate all values in the outer scope.
  std::vector<Value> values;
  for (const auto& [target, value] : with.assignments) values.push_back(eval(*value));
  enter(with.scope);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Target& target = with.assignments[i].first;
    located(target.extent, [&] { assign(target, values[i]); });
  }
  const Flow flow = run(with.body);
  leave(with.scope);
  return flow;
}

Interpreter::Flow Interpreter::run(const Macro& macro) {
  variable(macro.slot) = runtime_.make<MacroObject>(*this, *macro.macro, frame_);
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const CallBlock& block) {
  const auto& node = std::get<Call>(block.call->node);
  const Value callee = eval(*node.callee);
  Arguments given = arguments(node.arguments);
  given.named.emplace_back("caller", runtime_.make<MacroObject>(*this, *block.macro, frame_));
  const Value result = located(block.call->extent, [&] { return call(callee, given); });
  write(to_text(runtime_, result));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Generation& generation) {
  const std::string text = call_macro(*generation.macro, frame_, {});
  if (options_.assistant_spans) {
    if (out_ != &root_)
      fail_unsupported("{% generation %} within a block or macro whose text is collected has no place in the output");
    assistant_.push_back({root_.size(), root_.size() + text.size()});
  }
  write(text);
  return Flow::normal;
}

namespace {

std::string quoted_name(const MacroDef& macro) { return macro.name.empty() ? "None" : string_repr(macro.name); }

/// Moves the named argument to `value`. Returns false if it was not passed.
bool take(std::vector<std::pair<std::string, Value>>& named, std::string_view name, Value& value) {
  const auto at = std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
  if (at == named.end()) return false;
  value = std::move(at->second);
  named.erase(at);
  return true;
}

/// Binds arguments to the parameters of a macro as Python does.
void bind(Runtime& runtime, const MacroDef& macro, const Arguments& given, std::vector<Value>& slots) {
  const auto slot = [&](int index) -> Value& { return slots[index]; };
  const std::size_t positional = std::min(given.positional.size(), macro.parameters.size());
  runtime.spend((macro.parameters.size() + 1) * given.named.size());
  auto named = given.named;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Name& name = macro.parameters[i].name;
    if (i < positional)
      slot(name.slot.index) = given.positional[i];
    else
      take(named, name.name, slot(name.slot.index));
  }
  if (macro.caller >= 0 && !take(named, "caller", slot(macro.caller)))
    slot(macro.caller) = Value::undefined("No caller defined");
  if (macro.kwargs >= 0) {
    DictBuilder rest;
    for (auto& [name, value] : named) rest.set(name, std::move(value));
    slot(macro.kwargs) = std::move(rest).finish();
  } else if (!named.empty()) {
    const std::string& name = named.front().first;
    if (name == "caller")
      fail_operation(fmt::format(
          "macro {} was invoked with two values for the special caller argument. This is most likely a bug.",
          quoted_name(macro)));
    fail_operation(fmt::format("macro {} takes no keyword argument {}", quoted_name(macro), string_repr(name)));
  }
  if (macro.varargs >= 0) {
    const auto rest = given.positional.begin() + static_cast<std::ptrdiff_t>(positional);
    slot(macro.varargs) = Value::tuple({rest, given.positional.end()});
  } else if (given.positional.size() > positional) {
    fail_operation(fmt::format("macro {} takes not more than {} argument(s)", quoted_name(macro), positional));
  }
  runtime.spend((slots.size() + given.positional.size()) * sizeof(Value));
}

}  // namespace

std::string Interpreter::call_macro(const MacroDef& macro, const FramePtr& outer, const Arguments& given) {
  const Runtime::Level level = runtime_.deeper();
  auto frame = std::make_shared<Frame>();
  frame->slots.assign(static_cast<std::size_t>(macro.function.size), Value::missing());
  frame->outer = outer;
  bind(runtime_, macro, given, frame->slots);
  const Restore<FramePtr> current(frame_, std::move(frame));
  enter(macro.function.scope);
  for (const Parameter& parameter : macro.parameters) {
    if (!variable(parameter.name.slot).is_missing()) continue;
    Value initial =
        parameter.initial
            ? eval(*parameter.initial)
            : Value::undefined(fmt::format("parameter {} was not provided", string_repr(parameter.name.name)));
    variable(parameter.name.slot) = std::move(initial);
  }
  std::string text;
  collect(macro.function.body, text);
  return text;
}

Value MacroObject::attribute(Runtime& runtime, std::string_view name) {
  if (name == "name") return macro_.name.empty() ? Value() : Value(macro_.name);
  if (name == "catch_kwargs") return macro_.kwargs >= 0;
  if (name == "catch_varargs") return macro_.varargs >= 0;
  if (name == "caller") return macro_.caller >= 0;
  if (name != "arguments") return Value::missing();
  runtime.spend(macro_.parameters.size() * sizeof(Value));
  std::vector<Value> names;
  for (const Parameter& parameter : macro_.parameters) names.emplace_back(parameter.name.name);
  return Value::tuple(std::move(names));
}

std::string MacroObject::repr(Runtime&, int) {
  return fmt::format("<Macro {}>", macro_.name.empty() ? "anonymous" : string_repr(macro_.name));
}

}  // namespace lathe::jinja
