#pragma once

#include <string>
#include <string_view>

#include "runtime/text/template/values/object.h"

/// Values as Python prints them.
namespace lathe::jinja {

/// Python's str(value): what {{ value }} writes.
std::string to_text(Runtime& runtime, const Value& value);
/// The same as a Value; a string is itself.
Value to_string_value(Runtime& runtime, const Value& value);

/// Python's repr(value). Failure [template_limit] where namespaces nest too deep.
std::string repr(Runtime& runtime, const Value& value, int depth = 0);

/// Python's repr(float): the shortest text that reads back the same; "inf" and "nan".
std::string float_repr(double value);
/// Python's repr(str): in quotes, what cannot be printed escaped.
std::string string_repr(std::string_view text);

}  // namespace lathe::jinja
