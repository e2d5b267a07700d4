#pragma once

#include <cstdint>
#include <vector>

namespace lathe {

/// Some iterations of a launch's parallel loop, run in one go by one thread of the pool; 0 is the caller's. On a GPU
/// one range holds all blocks.
struct TaskRange {
  int thread;
  std::int64_t begin, end;
  double start, seconds;  ///< since the start of the run
};

/// What happened in one launch of a traced run.
struct LaunchTime {
  int launch;
  double start, seconds;          ///< since the start of the run
  double gflops;                  ///< work done in it, in 10^9 operations; 0 where not counted
  std::int64_t tasks;             ///< iterations of its parallel loop; blocks of a GPU
  std::vector<TaskRange> ranges;  ///< in order of their first iteration
};

}  // namespace lathe
