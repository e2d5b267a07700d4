#pragma once

#include <cstdint>
#include <vector>

#include "runtime/threads/thread_pool.h"

/// The time to move bytes on this machine, measured by plain loops with one addition per load.
namespace lathe::bench {

/// One sweep that reads `count` floats of each of `reads` arrays and writes as many to each of `writes` arrays. In
/// place: the output arrays are the first input arrays.
struct Sweep {
  int reads = 1, writes = 1;
  std::int64_t count = 0;
  bool in_place = false;

  double bytes() const { return 4.0 * static_cast<double>(count) * (reads + writes); }
};

/// Returns the seconds of all sweeps together: the median of `repeats` runs, with ordinary or non-temporal stores,
/// whichever is faster.
double measure_floor(ThreadPool& threads, const std::vector<Sweep>& sweeps, int repeats);

/// Returns the median of `values`, which must not be empty.
double median(std::vector<double> values);

}  // namespace lathe::bench
