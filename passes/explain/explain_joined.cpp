#include "passes/explain/explain_joined.h"

#include <fmt/core.h>

#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"
#include "passes/memory/memory_plan.h"

namespace lathe {

std::string explain_joined(const Program& program) {
  std::string text;
  for (const JoinedLaunches& joined : program.joined) {
    const kernel::Kernel& kernel = program.kernels[joined.launch.kernel];
    std::int64_t barriers = 0, prefetched = 0;
    for (const kernel::Statement& s : kernel.body) {
      const kernel::Instruction& in = *kernel::intrinsic_operation(kernel, s);
      barriers += kernel::record_of(in) == &kernel::grid_barrier_record;
      if (kernel::record_of(in) != &kernel::grid_prefetch_record) continue;
      const auto prefetch = kernel::GridPrefetch::of(in);
      prefetched += kernel.values[prefetch.count].integer *
                    static_cast<std::int64_t>(size_in_bytes(kernel.buffers[prefetch.from].dtype));
    }
    text += fmt::format(
        "launches {} to {}: one launch of {}, with {} kernels, {} grid barriers, and {} of weights prefetched before "
        "them\n",
        joined.first, joined.end - 1, kernel.name, kernel.phase_kernels.size(), barriers, format_bytes(prefetched));
  }
  return text;
}

}  // namespace lathe
