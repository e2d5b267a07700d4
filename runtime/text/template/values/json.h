#pragma once

#include <string>
#include <string_view>

#include "runtime/text/template/values/object.h"

/// JSON as Python's json module reads and writes it.
namespace lathe::jinja {

struct JsonStyle {
  bool ascii = false;  ///< everything else as \uXXXX
  bool sort_keys = false;
  bool multiline = false;  ///< each element on a line of its own
  std::string indent;      ///< of each depth, when multiline
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Failure [template_operation] for what is no JSON: undefined values, objects, tuples as keys.
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

/// Reads one JSON value; keys keep their order, numbers that are no integers of 64 bits are floats. `file` is for
/// messages. UserError [json] for what is no JSON, a key twice or deeper than 64.
Value parse_json(std::string_view text, std::string_view file);

}  // namespace lathe::jinja
