#pragma once

#include <cstdint>

namespace lathe {

/// Storage format of the 16-bit floats; arithmetic is done in f32.
struct Bf16 {
  std::uint16_t bits = 0;
};
struct F16 {
  std::uint16_t bits = 0;
};

/// Converts f32 to the nearest 16-bit float, ties to even. Overflow gives infinity, subnormals are exact. A NaN keeps
/// its sign and the upper bits of its payload, and stays a NaN. All 16-bit patterns survive a round trip through f32.
Bf16 to_bf16(float value);
F16 to_f16(float value);
/// Same for f64, rounded once.
Bf16 to_bf16(double value);
F16 to_f16(double value);

/// Returns the number if it is exact in the narrower format, otherwise the neighbour whose last bit is 1. Rounding
/// the result to a format at least two bits narrower equals rounding the number directly (Boldo and Melquiond, IEEE
/// Trans. Computers 57, 2008). An integer keeps at least 42 bits.
float round_to_odd(double value);
double round_to_odd(std::int64_t value);

/// Exact conversions.
float to_float(Bf16 value);
float to_float(F16 value);

}  // namespace lathe
