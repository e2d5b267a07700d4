#pragma once

#include <string>

namespace lathe::tools {

/// Escapes text for SVG: no markup, and no control characters of terminals.
std::string escaped(const std::string& text);

}  // namespace lathe::tools
