#pragma once

#include <cstdint>
#include <vector>

#include "runtime/threads/thread_pool.h"

/// The time that moving bytes takes on this machine, measured by plain loops that do one addition a load.
namespace lathe::bench {

/// One sweep over `count` floats of each of `reads` arrays, storing as many of each of `writes` arrays. In place, the
/// arrays written are the first ones read.
struct Sweep {
  int reads = 1, writes = 1;
  std::int64_t count = 0;
  bool in_place = false;

  double bytes() const { return 4.0 * static_cast<double>(count) * (reads + writes); }
};

/// Seconds for the sweeps one after the other: the median of `repeats` runs, the better of ordinary and non-temporal
/// stores.
double measure_floor(ThreadPool& threads, const std::vector<Sweep>& sweeps, int repeats);

/// The median; `values` is not empty.
double median(std::vector<double> values);

}  // namespace lathe::bench
