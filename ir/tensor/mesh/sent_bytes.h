#pragma once

#include <cstdint>

namespace lathe::ir {

/// Bytes that a process sends; collectives of a single element are counted separately.
struct SentBytes {
  std::int64_t tensors = 0, scalars = 0;
  bool operator==(const SentBytes&) const = default;
};

}  // namespace lathe::ir
