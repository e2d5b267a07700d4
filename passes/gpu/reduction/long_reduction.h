#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel/builder.h"

namespace lathe::gpu {

/// Reductions side by side, each shared by the threads of one block. Where these are too few to read at the speed of
/// memory, each reduction is cut into pieces, a block each; what a piece gives lies in a buffer of partial results,
/// which further kernels join in an order that follows from the sizes alone.
struct LongReduction {
  std::optional<std::int64_t> results;  ///< how many are side by side; unknown: many
  std::optional<std::int64_t> length;   ///< elements of each; unknown: many
  std::int64_t bytes = 0;               ///< that are read for an element, in all loops
  double threads = 1;                   ///< that share a whole one
  double piece_threads = 1;             ///< that share a piece
  int kernels = 1;                      ///< that pieces take more
};

/// Into how many pieces at most each is cut: as many as end first by an estimate from the sizes alone, 1 where one
/// block is as good. A machine of 3e12 bytes a second is taken, whose threads get two vectors of 16 bytes in 0.6 us.
/// Not measured.
int pieces_of(const LongReduction& reduction);

/// A reduction of `n` elements is cut into `count` pieces of `length`, `most` at most (1: it is not cut), each but
/// the last a multiple of `least` long where it would be shorter, else of `unit`.
struct Pieces {
  kernel::Value length, count;
};
Pieces cut(kernel::Builder& b, kernel::Value n, int most, int least, int unit);

}  // namespace lathe::gpu
