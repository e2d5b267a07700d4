#pragma once

#include <cstdint>

namespace lathe {

/// What lies between processes.
struct NetworkInfo {
  std::int64_t bucket_bytes = 25 << 20;  ///< of one exchange from which on bandwidth counts, not latency
};

}  // namespace lathe
