#pragma once

#include <cstdint>

namespace lathe {

/// The stored form of the 16-bit floats; arithmetic is done in f32.
struct Bf16 {
  std::uint16_t bits = 0;
};
struct F16 {
  std::uint16_t bits = 0;
};

/// f32 to the nearest 16-bit float, ties to even. Overflow gives infinity, subnormals are exact. A NaN keeps its sign
/// and the upper bits of its payload, and stays a NaN. Every 16-bit pattern survives the way to f32 and back.
Bf16 to_bf16(float value);
F16 to_f16(float value);

/// Exact.
float to_float(Bf16 value);
float to_float(F16 value);

}  // namespace lathe
