#pragma once

#include <string>

namespace lathe::tools {

/// Escapes text for SVG: markup and terminal control characters.
std::string escaped(const std::string& text);

}  // namespace lathe::tools
