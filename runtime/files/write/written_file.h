#pragma once

#include <array>
#include <cstdint>

namespace lathe {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Size and digest of a written file.
struct WrittenFile {
  std::uint64_t size = 0;  ///< bytes
  Sha256Digest sha256{};
};

}  // namespace lathe
