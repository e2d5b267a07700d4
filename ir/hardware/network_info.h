#pragma once

#include <cstdint>

namespace lathe {

/// The network between processes. Rates are those of one 100 Gbit/s port, not measured: the initial values of
/// predictions.
struct NetworkInfo {
  std::int64_t bucket_bytes = 25 << 20;  ///< size of a collective above which bandwidth dominates latency
  double bytes_per_second = 12.5e9;      ///< send bandwidth of a process
  double message_seconds = 2e-6;         ///< fixed cost per message
};

}  // namespace lathe
