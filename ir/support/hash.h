#pragma once

#include <cstddef>
#include <cstdint>

namespace lathe {

/// Mixes a value into a hash with the finalizer of splitmix64 (Steele, Lea, Flood 2014). Similar inputs give
/// unrelated hashes, and the low bits can be used alone.
inline std::size_t mix_hash(std::size_t hash, std::size_t value) {
  std::uint64_t x = hash + 0x9e3779b97f4a7c15 + value;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace lathe
