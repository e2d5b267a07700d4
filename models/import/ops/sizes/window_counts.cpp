#include "models/import/ops/sizes/window_counts.h"

#include <fmt/core.h>

#include "models/import/ops/sizes/dim_functions.h"

namespace lathe::importing {

void require_multiple(const OpCall& call, int dim, const Dim& size, std::int64_t stride) {
  if (const auto needed = needed_multiple(size, stride))
    call.fail_size(
        fmt::format("the number of windows along dim {} of size {} at a stride of {} is not known to be whole", dim,
                    size.to_string(), stride),
        needed, fmt::format("export the model with a fixed size, or with a multiple of {}", stride));
}

std::int64_t ceil_excess(const Dim& size, std::int64_t high, std::int64_t extent, std::int64_t stride) {
  const Dim rest = size - Dim(extent);  // after the first window
  if (rest.value().value_or(0) < 0) return 0;
  const std::optional<Dim> more = rounded_up(rest, stride);
  const std::int64_t excess = more ? (*more * Dim(stride) - rest).value().value_or(0) : 0;
  // The last window starts at rest + excess, and the dim without the padding at its end has size - high elements.
  return excess >= extent - high ? 0 : excess;
}

}  // namespace lathe::importing
