#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::text {

/// Returns the visible character that represents a byte in GPT-2's alphabet.
char32_t byte_character(std::uint8_t byte);
/// Returns the byte that a character of the alphabet represents.
std::optional<std::uint8_t> character_byte(char32_t code);

/// Returns the bytes that text in the alphabet represents; nullopt if it contains another character.
std::optional<std::string> to_bytes(std::string_view text);

}  // namespace lathe::text
