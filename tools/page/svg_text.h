#pragma once

#include <string>

namespace lathe::tools {

/// A text as it stands in SVG: no mark-up, and no character that commands a terminal.
std::string escaped(const std::string& text);

}  // namespace lathe::tools
