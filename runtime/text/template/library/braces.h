#pragma once

#include <string>
#include <string_view>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

/// Python's format.format(..): {} {0} {name} {name.attribute[key]!r:spec}. Failure [template_operation].
std::string format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments);

}  // namespace lathe::jinja
