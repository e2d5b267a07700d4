#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::text {

/// GPT-2's alphabet: each byte is one character that can be seen.
char32_t byte_character(std::uint8_t byte);
/// The byte that a character of the alphabet stands for.
std::optional<std::uint8_t> character_byte(char32_t code);

/// The bytes that text in the alphabet stands for; nothing where it holds another character.
std::optional<std::string> to_bytes(std::string_view text);

}  // namespace lathe::text
