#include <catch2/catch.hpp>
#include <cmath>

#include "ir/support/numbers/philox.h"

using namespace lathe;

TEST_CASE("philox matches the published test vectors") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a random word maps to a number from 0 up to but excluding 1") {
  CHECK(uniform_f32(0) == 0.0f);
  CHECK(uniform_f32(0xff) == 0.0f);
  CHECK(uniform_f32(0x100) == 0x1p-24f);
  CHECK(uniform_f32(0xffffffff) == 1.0f - 0x1p-24f);
  CHECK(uniform_f64(0, 0x800) == 0x1p-53);
  CHECK(uniform_f64(0xffffffff, 0xffffffff) == 1.0 - 0x1p-53);
  CHECK(uniform_f64(0x80000000, 0) == 0.5);
}

TEST_CASE("uniform numbers have the mean and variance of the uniform distribution") {
  constexpr int n = 100000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < n / 4; ++i)
    for (const std::uint32_t word : philox({i, 0, 0, 0}, {7, 11})) {
      const double u = uniform_f32(word);
      sum += u;
      squares += u * u;
    }
  const double mean = sum / n, variance = squares / n - mean * mean;
  CHECK(std::fabs(mean - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::fabs(variance - 1.0 / 12) < 0.001);
}
