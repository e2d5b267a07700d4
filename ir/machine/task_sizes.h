#pragma once

#include <cstdint>

namespace lathe {

/// How the iterations of parallel loops are shared out among threads. Work is counted in scalar operations: 2^18
/// took a thread 5 to 20 microseconds; on which CPU is not recorded.
struct TaskSizes {
  std::int64_t byte_work = 2;               ///< that a byte from memory takes as long as
  std::int64_t least_chunk_work = 1 << 18;  ///< of a chunk, so that handing it out costs little
  std::int64_t heavy_work = 1 << 22;        ///< of an iteration, from which on iterations may be unequal
  int light_chunks = 64;                    ///< of a loop of light iterations, at most
  int heavy_chunks = 256;  ///< of one of heavy iterations, so that all threads end at about the same time
  /// Launches of a group run together where they do no more, some milliseconds for one thread.
  std::int64_t together_work = 1 << 26;
  std::int64_t library_work = 200;        ///< a call of the C library: what is transcendental, in f64
  std::int64_t sorted_element_work = 64;  ///< sorting, an element
  std::int64_t top_k_element_work = 4, top_k_taken_work = 32;  ///< top_k: an element, and one of the best
  bool operator==(const TaskSizes&) const = default;
};

}  // namespace lathe
