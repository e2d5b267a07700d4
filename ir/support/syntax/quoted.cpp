#include "ir/support/syntax/quoted.h"

#include <fmt/core.h>

#include "ir/support/dim.h"
#include "ir/support/visible.h"

namespace lathe::syntax {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view shown = text.substr(0, character.bytes);
    if (shown == "\"" || shown == "\\") result += '\\';
    result += character.hidden ? visible(shown) : std::string(shown);
    text.remove_prefix(character.bytes);
  }
  return result + "\"";
}

std::string name_or_quoted(std::string_view name) {
  return is_dim_name(name) && !name.ends_with('.') ? std::string(name) : quoted(name);
}

std::string sigiled(char sigil, std::string_view name) {
  return is_dim_name(name) ? fmt::format("{}{}", sigil, name) : sigil + quoted(name);
}

}  // namespace lathe::syntax
