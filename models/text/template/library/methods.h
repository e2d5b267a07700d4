#pragma once

#include <span>
#include <string_view>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

struct MethodEntry {
  std::string_view name;
  /// self.name(arguments)
  Value (*call)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

/// Returns an attribute of a value that is not an element: a bound method or an attribute of an object. Returns
/// missing if it does not exist, and undefined (unsafe) for mutating methods of lists and dicts. Throws Failure
/// [template_unsupported] for Python methods that this subset lacks.
Value bound_attribute(Runtime& runtime, const Value& value, std::string_view name);

std::span<const MethodEntry> string_methods();
std::span<const MethodEntry> string_searches();
std::span<const MethodEntry> string_questions();
std::span<const MethodEntry> sequence_methods();
std::span<const MethodEntry> dict_methods();

}  // namespace lathe::jinja
