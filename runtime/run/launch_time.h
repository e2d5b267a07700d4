#pragma once

#include <cstdint>
#include <vector>

namespace lathe {

/// Iterations of a launch's parallel loop that one thread of the pool ran without interruption; thread 0 is the
/// caller. On a GPU, one range contains all blocks.
struct TaskRange {
  int thread;
  std::int64_t begin, end;
  double start, seconds;  ///< relative to the start of the run
};

/// Timing of one launch of a traced run.
struct LaunchTime {
  int launch;
  double start, seconds;          ///< relative to the start of the run
  double gflops;                  ///< work in 10^9 operations; 0 if not counted
  std::int64_t tasks;             ///< iterations of its parallel loop; blocks on a GPU
  std::vector<TaskRange> ranges;  ///< ordered by first iteration
};

}  // namespace lathe
