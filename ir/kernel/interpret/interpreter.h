#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Host memory bound to a buffer parameter: `count` elements of the buffer's dtype.
struct BoundBuffer {
  void* data = nullptr;
  std::int64_t count = 0;
};

struct RunOptions {
  std::int64_t begin = 0;      ///< first iteration of the parallel loop
  std::int64_t end = -1;       ///< -1: all
  std::int64_t max_steps = 0;  ///< throw InternalError after this many statements; 0: no limit
  /// By buffer parameter: raised to the number of elements up to the last one that is accessed.
  std::span<std::int64_t> reached = {};
};

/// Interprets the kernel with the semantics of builder.h and docs/kernel-ir.md, one scalar at a time, and returns the
/// status word. Throws InternalError naming kernel, buffer, index and size for an access out of bounds, a read of
/// scratch that was never written, or a barrier that not all threads of a block reach. Runs block and thread loops as
/// such: the threads of a block take turns advancing from barrier to barrier.
std::int64_t interpret(const Kernel& kernel, std::span<const BoundBuffer> buffers, std::span<const std::int64_t> dims,
                       const RunOptions& options = {});

/// Returns the number of iterations of the parallel loop (1 without one).
std::int64_t extent(const Kernel& kernel, std::span<const std::int64_t> dims);

}  // namespace lathe::kernel
