#include "models/text/template/macro.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/located.h"
#include "models/text/template/values/repr.h"

namespace lathe::jinja {

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
  const auto slot = [&](int index) -> Value& { return slots[static_cast<std::size_t>(index)]; };
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
