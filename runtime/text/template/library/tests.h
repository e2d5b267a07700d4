#pragma once

#include <string_view>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

/// What stands behind `is`.
struct TestEntry {
  std::string_view name;
  /// subject is name(arguments)
  bool (*holds)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Null where there is no test of that name.
const TestEntry* find_test(std::string_view name);

}  // namespace lathe::jinja
