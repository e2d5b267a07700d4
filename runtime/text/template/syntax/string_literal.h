#pragma once

#include <string>

#include "runtime/text/template/syntax/source.h"

namespace lathe::jinja {

/// The text that a string literal stands for: `inside` lies between its quotes. Python's escapes, but for \N{..}.
/// Throws ParseError.
std::string unescape(const Source& source, Extent inside);

}  // namespace lathe::jinja
