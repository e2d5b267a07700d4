#pragma once

#include <string>
#include <string_view>

#include "models/text/template/values/object.h"
#include "models/text/template/values/value.h"

/// Conversion of values to text as in Python.
///
/// Reads and writes JSON as Python's json module does.
namespace lathe::jinja {

class Runtime;

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

struct JsonStyle {
  bool ascii = false;  ///< write other characters as \uXXXX
  bool sort_keys = false;
  bool multiline = false;  ///< write each element on its own line
  std::string indent;      ///< per nesting level, if multiline
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Returns the value as JSON. Throws Failure [template_operation] for undefined values, objects, and tuples as keys.
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

/// Parses one JSON value. Keys keep their order; numbers that are not 64-bit integers become floats. `file` is the
/// name in messages. Throws UserError [json] for invalid JSON, a repeated key, or nesting deeper than 64.
Value parse_json(std::string_view text, std::string_view file);

}  // namespace lathe::jinja
