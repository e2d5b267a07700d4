#pragma once

#include <string>
#include <string_view>

#include "models/text/template/values/object.h"

/// Conversion of values to text as in Python.
namespace lathe::jinja {

/// Returns Python's str(value), the text that {{ value }} writes.
std::string to_text(Runtime& runtime, const Value& value);
/// Returns the same as a Value; returns strings unchanged.
Value to_string_value(Runtime& runtime, const Value& value);

/// Returns Python's repr(value). Throws Failure [template_limit] if namespaces nest too deeply.
std::string repr(Runtime& runtime, const Value& value, int depth = 0);

/// Returns Python's repr(float): the shortest text that parses to the same value, or "inf" or "nan".
std::string float_repr(double value);
/// Returns Python's repr(str): quoted, with unprintable characters escaped.
std::string string_repr(std::string_view text);

}  // namespace lathe::jinja
