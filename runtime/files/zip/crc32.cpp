#include "runtime/files/zip/crc32.h"

#include <zlib.h>

namespace lathe {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  if (bytes.empty()) return before;  // zlib starts again for a null pointer
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace lathe
