#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::text {

/// A character of valid UTF-8 and its size in bytes.
struct Character {
  char32_t code = 0;
  std::uint32_t size = 0;
};

/// Returns whether a byte of valid UTF-8 starts a character.
constexpr bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// Returns the size in bytes of the character that starts with `lead`, in valid UTF-8.
constexpr std::uint32_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Returns the character that starts at byte `at` of valid UTF-8.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// Returns the character that ends before byte `end` > 0 of valid UTF-8.
inline Character character_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (!starts_character(text[at])) --at;
  return character_at(text, at);
}

/// Appends a code point, which must not be a surrogate.
void append_character(std::string& text, char32_t code);
std::string utf8(char32_t code);

/// Returns the number of characters of valid UTF-8.
std::size_t count_characters(std::string_view text);

/// Returns the position of the first byte that is not part of valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// Repairs UTF-8 that arrives in fragments. Each maximal prefix of an incomplete character becomes one U+FFFD, as
/// does each other invalid byte.
class Utf8Repair {
 public:
  /// Appends the output known so far. An incomplete character at the end waits for more bytes.
  void push(std::string_view bytes, std::string& out);
  /// Ends the input.
  void finish(std::string& out);

 private:
  std::string pending_;
};

}  // namespace lathe::text
