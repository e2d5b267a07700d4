#pragma once

#include <cstdint>

namespace lathe {

/// The network between processes. Rates are those of one 100 Gbit/s port, not measured: the initial values of
/// predictions.
struct NetworkInfo {
  std::int64_t bucket_bytes = 25 << 20;  ///< size of a collective above which bandwidth dominates latency
  double bytes_per_second = 12.5e9;      ///< send bandwidth of a process
  double message_seconds = 2e-6;         ///< fixed cost per message
  std::int64_t exchanged_byte = 64;  ///< cost of sending a byte, in bytes that a process computes redundantly instead
  /// An MPI message is split into up to most_pieces chunks of at least least_piece bytes.
  std::int64_t least_piece = 1 << 20, most_pieces = 64;
  /// Bytes of each process that a reduction in CPU memory processes at a time: the most recently received ones are
  /// still in a cache.
  std::int64_t folded_bytes = 512 << 10;
};

}  // namespace lathe
