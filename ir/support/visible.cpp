#include "ir/support/visible.h"

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace lathe {

namespace {

struct Code {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not valid UTF-8
};

Code decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < least[bytes] || value > 0x10ffff || surrogate ? Code{} : Code{value, bytes};
}

bool is_hidden(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;  // control characters
  if (code == 0x2028 || code == 0x2029) return true;               // separators
  return code == 0x061c || code == 0x200e || code == 0x200f ||     // direction marks
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string escape(char byte) {
  return byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool hide = character.hidden && kept.find(text.front()) == std::string_view::npos;
    for (const char byte : text.substr(0, character.bytes))
      if (hide)
        result += escape(byte);
      else
        result += byte;
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace

Character first_character(std::string_view text) {
  const Code code = decode(text);
  return code.bytes == 0 ? Character{1, true} : Character{code.bytes, is_hidden(code.value)};
}

std::string visible(std::string_view text) { return escaped(text, {}); }
std::string visible_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace lathe
