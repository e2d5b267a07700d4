#pragma once

#include <cstdint>

namespace lathe {

/// How the iterations of parallel loops are divided among threads. Work is in scalar operations: 2^18 took a thread 5
/// to 20 microseconds; the CPU is not recorded.
struct TaskSizes {
  std::int64_t byte_work = 2;               ///< cost of a byte from memory
  std::int64_t least_chunk_work = 1 << 18;  ///< minimum per chunk, so that scheduling it is cheap
  std::int64_t heavy_work = 1 << 22;        ///< per iteration; at or above, iterations may be unequal
  int light_chunks = 64;                    ///< maximum chunks of a loop of light iterations
  int heavy_chunks = 256;  ///< same for heavy iterations, so that all threads end at about the same time
  /// Maximum work of launches in a group that run together, a few milliseconds on one thread.
  std::int64_t together_work = 1 << 26;
  bool operator==(const TaskSizes&) const = default;
};

}  // namespace lathe
