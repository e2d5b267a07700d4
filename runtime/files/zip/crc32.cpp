#include "runtime/files/zip/crc32.h"

#include <array>

namespace lathe {

namespace {

constexpr std::array<std::uint32_t, 256> byte_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320U ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> table = byte_table();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t value = ~before;
  for (const std::byte byte : bytes)
    value = table[(value ^ std::to_integer<std::uint32_t>(byte)) & 0xff] ^ (value >> 8);
  return ~value;
}

}  // namespace lathe
