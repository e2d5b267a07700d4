#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lathe {

/// Text whose origin is unknown (a name, a path, a line of a file), for one line of a message, a comment or a
/// terminal: it can neither end the line nor command the terminal. Line ends and tabs become \n and \t, and each byte
/// of another hidden character becomes \x1b.
std::string visible(std::string_view text);

/// The same for text that has lines of its own: line ends and tabs stay.
std::string visible_lines(std::string_view text);

/// A character of UTF-8, or a byte that is none. Not to be shown as they are (`hidden`): control characters, line and
/// paragraph separators, marks that turn the direction of writing, and such bytes.
struct Character {
  std::size_t bytes = 1;
  bool hidden = false;
};
/// The first character of a text that is not empty.
Character first_character(std::string_view text);

}  // namespace lathe
