#pragma once

#include <cstdint>

namespace lathe::ir {

/// Bytes that a process sends to others; those of exchanges of a single element apart.
struct SentBytes {
  std::int64_t tensors = 0, scalars = 0;
  bool operator==(const SentBytes&) const = default;
};

}  // namespace lathe::ir
