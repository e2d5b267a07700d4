#pragma once

#include <array>
#include <cstdint>

namespace lathe {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Returns four random words
/// from a counter and a key, without state. All backends produce exactly these words.
using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t multiplier0 = 0xd2511f53, multiplier1 = 0xcd9e8d57;
  constexpr std::uint32_t weyl0 = 0x9e3779b9, weyl1 = 0xbb67ae85;
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product0 = multiplier0 * counter[0], product1 = multiplier1 * counter[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32), low0 = static_cast<std::uint32_t>(product0);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32), low1 = static_cast<std::uint32_t>(product1);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key = {key[0] + weyl0, key[1] + weyl1};
  }
  return counter;
}

/// Returns a uniform value in [0, 1): the top 24 bits of the word times 2^-24, exact in f32.
constexpr float uniform_f32(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Returns a uniform value in [0, 1): the top 53 bits of high:low times 2^-53, exact in f64.
constexpr double uniform_f64(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((static_cast<std::uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

static_assert(philox({0, 0, 0, 0}, {0, 0}) == PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});

}  // namespace lathe
