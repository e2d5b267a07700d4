#pragma once

#include <string>
#include <string_view>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

/// Python's `format % values`: one value, a tuple of several, or a dict for %(name)s. Failure [template_operation].
std::string format_printf(Runtime& runtime, std::string_view format, const Value& values);

}  // namespace lathe::jinja
