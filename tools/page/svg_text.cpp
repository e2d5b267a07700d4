#include "tools/page/svg_text.h"

#include "ir/support/visible.h"

namespace lathe::tools {

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : visible(text)) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

}  // namespace lathe::tools
