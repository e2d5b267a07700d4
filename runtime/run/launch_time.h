#pragma once

#include <cstdint>
#include <vector>

namespace lathe {

/// Iterations of a launch's parallel loop that one thread of the pool ran without interruption; thread 0 is the
/// caller. On a GPU, one range contains all blocks.
struct TaskRange {
  int thread;
  std::int64_t begin, end;
  double start;    ///< relative to the start of the run
  double seconds;  ///< of all runs of the launch
};

/// Timing of one launch of a traced run. A launch in loops of the program has one entry for all its runs, and none if
/// it does not run.
struct LaunchTime {
  int launch;
  double start;                   ///< of its first run, relative to the start of the traced run
  double seconds;                 ///< of all runs together
  double gflops;                  ///< work of all runs in 10^9 operations; 0 if not counted
  std::int64_t tasks;             ///< iterations of its parallel loop in one run; blocks on a GPU
  std::vector<TaskRange> ranges;  ///< ordered by first iteration; equal ranges of several runs are added up
  std::int64_t runs = 1;
};

}  // namespace lathe
