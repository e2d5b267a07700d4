#pragma once

#include <cstdint>

#include "runtime/machine/peak.h"

namespace lathe {

/// Runs `rounds` rounds and returns something that depends on all of them.
using FmaKernel = float (*)(std::int64_t rounds);

struct FmaProbe {
  VectorUnit unit;
  std::int64_t flops_per_round = 0;
  FmaKernel run = nullptr;
};
/// The one for the widest unit of this CPU.
FmaProbe fma_probe();

/// The sum of `count` floats, a multiple of 64, from an address aligned to 64.
float read_sum(const float* data, std::int64_t count);
/// a = b + s * c, in the same way.
void triad(float* a, const float* b, const float* c, float s, std::int64_t count);

}  // namespace lathe
