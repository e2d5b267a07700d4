#pragma once

#include <cstdint>

#include "runtime/host/peak.h"

namespace lathe {

/// Runs `rounds` rounds and returns a value that depends on all of them.
using FmaKernel = float (*)(std::int64_t rounds);

struct FmaProbe {
  VectorUnit unit;
  std::int64_t flops_per_round = 0;
  FmaKernel run = nullptr;
};
/// Returns the probe for the widest vector unit of this CPU.
FmaProbe fma_probe();

/// Returns the sum of `count` floats. `count` must be a multiple of 64 and `data` aligned to 64 bytes.
float read_sum(const float* data, std::int64_t count);

}  // namespace lathe
