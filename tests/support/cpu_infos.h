#pragma once

#include "ir/machine/cpu_info.h"

namespace lathe::test {

struct CpuParts {
  bool dot_pairs = false, slow_last_level = false, tiles = false;
};

/// A CPU with vectors of so many bits and just these parts; tiles come with vectors of 512 bits alone.
inline CpuInfo cpu_with(int vector_bits, const CpuParts& parts = {}) {
  CpuInfo cpu =
      parts.tiles && vector_bits == 512 ? *find_cpu_info("sapphirerapids") : cpu_info_for({}, {}, vector_bits);
  cpu.dot_pairs = parts.dot_pairs;
  cpu.slow_last_level = parts.slow_last_level;
  return cpu;
}

}  // namespace lathe::test
