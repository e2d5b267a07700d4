#pragma once

#include <functional>

#include "runtime/compile.h"

namespace lathe::bench {

/// Medians of alternating measurements: seconds per run, and a reference value for the same hardware.
struct Measured {
  double seconds = 0;
  double reference = 0;  ///< median of the reference: a peak, a bandwidth, or a lower bound in seconds
};

/// Alternates between `reference` and runs of the executable, for about `budget` seconds of runs, after 2 warm-up
/// runs. Measures at least 3 groups of runs. Runs shorter than a millisecond are grouped; each group gives one mean.
Measured measure(Executable& executable, const Tensors& inputs, const std::function<double()>& reference,
                 double budget = 0.5);

}  // namespace lathe::bench
