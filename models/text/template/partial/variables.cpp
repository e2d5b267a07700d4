#include "models/text/template/partial/variables.h"

#include <set>

#include "models/text/template/library/namespace.h"
#include "models/text/template/macro.h"
#include "models/text/template/values/identical.h"

namespace lathe::jinja {

namespace {

Variable read_variable(const Interpreter& interpreter, const std::string& name, const Value& value) {
  Variable variable{.value = value};
  if (!value.is(Kind::object)) return variable;
  const auto function = interpreter.functions().find(name);
  variable.standard = function != interpreter.functions().end() && function->second.same_as(value);
  variable.space = dynamic_cast<Namespace*>(value.object());
  if (variable.space)
    for (const auto& [key, attribute] : variable.space->attributes())
      variable.attributes.emplace(key.string(), attribute);
  const auto* macro = dynamic_cast<const MacroObject*>(value.object());
  if (macro && macro->outer() == interpreter.frame()) variable.macro = &macro->definition();
  return variable;
}

}  // namespace

Variables read_variables(const Interpreter& interpreter) {
  Variables all;
  std::set<const Namespace*> spaces;
  for (const Load& load : interpreter.program().main.scope) {
    const Value& value = interpreter.frame()->slots[static_cast<std::size_t>(load.index)];
    const auto [at, added] = all.named.emplace(load.name, read_variable(interpreter, load.name, value));
    const Namespace* space = at->second.space;
    if (!added || (space && !spaces.insert(space).second)) all.shares_namespace = true;
  }
  return all;
}

bool same_variable(const Variable& a, const Variable& b) {
  if (a.space || b.space) return a.space && b.space;
  if (a.macro || b.macro) return a.macro == b.macro;
  if (a.standard || b.standard) return a.standard && b.standard;
  return identical(a.value, b.value);
}

}  // namespace lathe::jinja
