#pragma once

#include <span>
#include <string_view>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

struct MethodEntry {
  std::string_view name;
  /// self.name(arguments)
  Value (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

/// The attribute of a value that is no key: a method with the value bound to it, or what an object has. Missing where
/// there is none, undefined (and unsafe) for what would change a list or dict, Failure [template_unsupported] for
/// methods of Python that this subset lacks.
Value bound_attribute(Runtime& runtime, const Value& value, std::string_view name);

std::span<const MethodEntry> string_methods();
std::span<const MethodEntry> string_searches();
std::span<const MethodEntry> string_questions();
std::span<const MethodEntry> sequence_methods();
std::span<const MethodEntry> dict_methods();

}  // namespace lathe::jinja
