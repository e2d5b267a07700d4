#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::text {

/// A character of valid UTF-8 and how many bytes it takes.
struct Character {
  char32_t code = 0;
  std::uint32_t size = 0;
};

/// Whether a byte of valid UTF-8 starts a character.
constexpr bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// The bytes of the character that `lead` starts, in valid UTF-8.
constexpr std::uint32_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character that starts at byte `at` of valid UTF-8.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// The character that ends before byte `end` > 0 of valid UTF-8.
inline Character character_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (!starts_character(text[at])) --at;
  return character_at(text, at);
}

/// Appends a code point, which is no surrogate.
void append_character(std::string& text, char32_t code);
std::string utf8(char32_t code);

/// How many characters valid UTF-8 has.
std::size_t count_characters(std::string_view text);

/// The first byte that is not part of valid UTF-8; npos where there is none.
std::size_t find_invalid_utf8(std::string_view text);

/// Bytes in fragments become valid UTF-8: each longest start of a character that does not go on becomes U+FFFD, and
/// so does each other stray byte.
class Utf8Repair {
 public:
  /// Appends to `out` what is decided by now: a character that may still go on waits for more bytes.
  void push(std::string_view bytes, std::string& out);
  /// No more bytes follow.
  void finish(std::string& out);

 private:
  std::string pending_;
};

}  // namespace lathe::text
