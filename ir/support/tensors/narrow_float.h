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
/// The same of f64, rounded once.
Bf16 to_bf16(double value);
F16 to_f16(double value);

/// The number itself where the narrower format has it, else the one of its two neighbours there whose last bit is 1.
/// Rounded to a format narrower by two bits or more, it gives what the number itself gives (Boldo and Melquiond, IEEE
/// Trans. Computers 57, 2008). An integer keeps at least 42 bits.
float round_to_odd(double value);
double round_to_odd(std::int64_t value);

/// Exact.
float to_float(Bf16 value);
float to_float(F16 value);

}  // namespace lathe
