#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lathe {

/// Escapes text of unknown origin (a name, a path, a line of a file) for one line of a message, a comment or a
/// terminal. The result cannot end the line or control the terminal. Newlines and tabs become \n and \t; each byte of
/// another hidden character becomes an escape such as \x1b.
std::string visible(std::string_view text);

/// Same for multi-line text: newlines and tabs stay.
std::string visible_lines(std::string_view text);

/// A UTF-8 character, or a byte that is not valid UTF-8. `hidden` characters must be escaped: control characters,
/// line and paragraph separators, direction marks, and invalid bytes.
struct Character {
  std::size_t bytes = 1;
  bool hidden = false;
};
/// Returns the first character of a non-empty text.
Character first_character(std::string_view text);

}  // namespace lathe
