#include "models/text/tokenizer/split/byte_alphabet.h"

#include <array>

#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

constexpr char32_t first_replacement = 0x100, end_of_replacements = 0x144;

/// Returns whether a byte is represented by the Latin-1 character of the same number, because that is visible.
constexpr bool is_visible(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> all{};
  char32_t next = first_replacement;
  for (std::uint32_t byte = 0; byte < 256; ++byte) all[byte] = is_visible(byte) ? byte : next++;
  return all;
}

constexpr std::array<char32_t, 256> characters = make_characters();

constexpr std::array<std::uint8_t, end_of_replacements - first_replacement> make_replaced() {
  std::array<std::uint8_t, end_of_replacements - first_replacement> all{};
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    if (!is_visible(byte)) all[characters[byte] - first_replacement] = static_cast<std::uint8_t>(byte);
  return all;
}

constexpr auto replaced = make_replaced();

}  // namespace

char32_t byte_character(std::uint8_t byte) { return characters[byte]; }

std::optional<std::uint8_t> character_byte(char32_t code) {
  if (code < first_replacement)
    return is_visible(code) ? std::optional(static_cast<std::uint8_t>(code)) : std::nullopt;
  if (code < end_of_replacements) return replaced[code - first_replacement];
  return std::nullopt;
}

std::optional<std::string> to_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    const auto byte = character_byte(next.code);
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
    at += next.size;
  }
  return bytes;
}

}  // namespace lathe::text
