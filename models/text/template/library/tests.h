#pragma once

#include <string_view>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

/// A test: the name after `is`, and its function.
struct TestEntry {
  std::string_view name;
  /// subject is name(arguments)
  bool (*holds)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Returns the test of that name, or null.
const TestEntry* find_test(std::string_view name);

}  // namespace lathe::jinja
