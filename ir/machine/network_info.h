#pragma once

#include <cstdint>

namespace lathe {

/// What lies between processes. Rates are those of one port of 100 Gbit/s, not measured: predictions start from them.
struct NetworkInfo {
  std::int64_t bucket_bytes = 25 << 20;  ///< of one exchange from which on bandwidth counts, not latency
  double bytes_per_second = 12.5e9;      ///< that a process sends
  double message_seconds = 2e-6;         ///< that each message costs beside its bytes
  std::int64_t exchanged_byte = 64;  ///< what one costs, in bytes that a process computes although another does too
  /// A message by MPI goes in pieces of at least so many bytes, and in no more pieces than that.
  std::int64_t least_piece = 1 << 20, most_pieces = 64;
  /// Of sums in the memory of a CPU so many bytes of each process are folded at a time: those that came last are
  /// still in a cache.
  std::int64_t folded_bytes = 512 << 10;
};

}  // namespace lathe
