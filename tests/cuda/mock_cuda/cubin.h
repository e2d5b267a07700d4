#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace lathe::test::mock {

/// Packs the mock of a cubin: a host library of one kernel, preceded by its length, because the driver only gets its
/// start address.
inline std::string pack_cubin(std::string_view library) {
  const std::size_t bytes = library.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(library);
}
inline std::string_view unpack_cubin(const void* cubin) {
  std::size_t size = 0;
  std::memcpy(&size, cubin, sizeof size);
  return {static_cast<const char*>(cubin) + sizeof size, size};
}

}  // namespace lathe::test::mock
