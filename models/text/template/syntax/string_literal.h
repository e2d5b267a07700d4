#pragma once

#include <string>

#include "models/text/template/syntax/source.h"

namespace lathe::jinja {

/// Returns the value of a string literal. `inside` is the text between its quotes. Supports Python's escapes except
/// \N{..}. Throws ParseError.
std::string unescape(const Source& source, Extent inside);

}  // namespace lathe::jinja
