#pragma once

#include <map>
#include <string>

#include "models/text/template/interpreter.h"

namespace lathe::jinja {

class Namespace;

/// A variable of a template, outside of its loops and macros.
struct Variable {
  Value value;
  Namespace* space = nullptr;                    ///< set if the value is a namespace
  std::map<std::string, Value> attributes = {};  ///< of the namespace, at the time of read_variables()
  const MacroDef* macro = nullptr;               ///< set if the value is a macro of the template
  bool standard = false;                         ///< the value is the standard function of that name
};

struct Variables {
  std::map<std::string, Variable> named;
  bool shares_namespace = false;  ///< two variables have the same namespace
};

/// Returns the variables of the template. No loop or macro may run.
Variables read_variables(const Interpreter& interpreter);

/// Returns whether no template can observe a difference, except in namespace attributes.
bool same_variable(const Variable& a, const Variable& b);

}  // namespace lathe::jinja
