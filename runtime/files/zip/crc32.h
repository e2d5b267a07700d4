#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lathe {

/// Returns the CRC-32 of zip files: the polynomial 0xedb88320, bits in reverse. `before` is the CRC of the bytes
/// before these.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace lathe
