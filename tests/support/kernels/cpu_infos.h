#pragma once

#include "ir/hardware/cpu_info.h"

namespace lathe::test {

struct CpuParts {
  bool dot_pairs = false, slow_last_level = false, tiles = false;
};

/// Returns a CPU with vectors of `vector_bits` bits and only these features; tiles require 512-bit vectors.
inline CpuInfo cpu_with(int vector_bits, const CpuParts& parts = {}) {
  CpuInfo cpu =
      parts.tiles && vector_bits == 512 ? *find_cpu_info("sapphirerapids") : cpu_info_for({}, {}, vector_bits);
  cpu.dot_pairs = parts.dot_pairs;
  cpu.slow_last_level = parts.slow_last_level;
  return cpu;
}

}  // namespace lathe::test
