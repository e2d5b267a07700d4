#pragma once

#include <functional>

#include "runtime/compile.h"

namespace lathe::bench {

/// Medians of what was measured in turns: seconds of one run, and what the machine could do beside it.
struct Measured {
  double seconds = 0;
  double beside = 0;  ///< what `beside` gave: a peak, a bandwidth, or the seconds of a floor
};

/// Rounds of `beside` and some runs, for about `budget` seconds of runs, but 3 rounds at least, after 2 runs that do
/// not count. Runs shorter than a millisecond go in groups, of which each gives one mean.
Measured measure(Executable& executable, const Tensors& inputs, const std::function<double()>& beside,
                 double budget = 0.5);

}  // namespace lathe::bench
