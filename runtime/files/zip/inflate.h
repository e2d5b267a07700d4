#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace lathe {

/// Decompresses deflate (RFC 1951) to exactly as many bytes as `to` has. Returns what is wrong with the compressed
/// bytes; nothing if they are valid.
std::optional<std::string_view> inflate(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace lathe
