#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/kernel/build/builder.h"

/// Blockwise sums of long reductions. One f32 accumulator over n equal terms has an error of up to n / 4 roundings.
/// Schedules therefore sum at most `block_terms` terms in f32 and add the block sums in f64. The relative error of a
/// sum of terms of the same sign is then below 1e-6 for any n. The block length is constant, so the result does not
/// depend on the number of threads. Other reductions, and sums of f64 or integers, use their own type throughout.
namespace lathe {

/// Number of terms that are summed sequentially in one block.
inline constexpr std::int64_t block_terms = 32;

/// Returns the dtype of the total of a reduction that is computed in `compute`.
DType total_type(ScalarOp op, DType compute);
/// Returns whether one accumulator over `terms` terms (nullopt: unknown) needs blocks.
bool adds_in_blocks(ScalarOp op, DType compute, std::optional<std::int64_t> terms);

/// Register accumulator of block sums.
class BlockTotal {
 public:
  /// `identity` must have the type and lanes of the block sums.
  BlockTotal(kernel::Builder& b, ScalarOp op, kernel::Value identity);
  void add(kernel::Value block);
  /// Returns the total in the type of the block sums.
  kernel::Value get() const;

 private:
  kernel::Builder* b_;
  ScalarOp op_;
  DType compute_;
  kernel::Var total_;
};

/// Emits a loop over [lo, hi) in ranges of `length`, of which the last may be shorter.
void for_ranges(kernel::Builder& b, kernel::Builder::Bound lo, kernel::Builder::Bound hi, std::int64_t length,
                const std::function<void(kernel::Value first, kernel::Value end)>& body);

/// Emits a loop that calls body(i) for i = lo, lo + step, ... < hi. Calls `end_of_block` after every `block_terms`
/// iterations and after the last one.
void for_blocks(kernel::Builder& b, kernel::Builder::Bound lo, kernel::Builder::Bound hi, std::int64_t step,
                const kernel::Builder::Body& body, const std::function<void()>& end_of_block);

}  // namespace lathe
