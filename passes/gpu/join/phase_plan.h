#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/support/dim.h"

namespace lathe::gpu {

/// Assumed for a size that is bound late, such as the length of a cache, where phases wait and what they prefetch.
inline constexpr std::int64_t late_length = 2048;
/// Returns a size with `late` for what is bound late.
std::int64_t nominal_size(const Dim& size, std::int64_t late);

/// Returns the access of two accesses together.
kernel::Access both(kernel::Access a, kernel::Access b);

/// How a phase accesses a parameter of the kernel of phases.
struct PhaseAccess {
  int buffer = -1;
  kernel::Access access = kernel::Access::read;
  bool can_be_awaited = false;  ///< kernel::can_be_awaited
  std::int64_t loads = 0;       ///< loads_of_thread, of a parameter that it reads
};

struct PhaseAccesses {
  std::vector<PhaseAccess> of;  ///< by parameter of the phase
  bool may_be_late = false;     ///< it is short: at a later barrier it takes no time
};

/// A phase, and how it waits for what earlier ones wrote: at a grid barrier before it, or for each element of the
/// awaited parameters (kernel::KernelPhase::awaited).
struct PlannedPhase {
  int phase = -1;
  bool follows_barrier = false;
  std::uint64_t awaited = 0;
  bool operator==(const PlannedPhase&) const = default;
};

struct PhasePlan {
  std::vector<int> cleared;          ///< buffers that phases await: cleared first, followed by a barrier
  std::vector<PlannedPhase> phases;  ///< in the order in which they run

  int barriers() const;
};

/// Plans phases in the order of their launches. A barrier costs about as much as four loads from L2, one after the
/// other (docs/internals/gpu-kernels.md). So a phase awaits the elements of a temporary, which one phase writes and
/// which no phase overwrites, if its threads load few of them in sequence. A short phase that would need a barrier,
/// and that nothing waits for, runs after the next barrier that another phase needs, such as the append to a cache
/// that earlier phases read. `is_temporary` is by buffer.
PhasePlan plan_phases(std::span<const PhaseAccesses> phases, const std::vector<bool>& is_temporary);

/// Returns an estimate of how many loads of a parameter a thread executes one after the other, of up to 16 bytes
/// each. Loops of an unknown length count as long.
std::int64_t loads_of_thread(const kernel::Kernel& kernel, kernel::BufferId parameter);

}  // namespace lathe::gpu
