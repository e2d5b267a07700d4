#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/kernel/build/builder.h"

/// Long sums. One f32 accumulator of n equal terms is off by up to n / 4 roundings. Schedules therefore add at most
/// `block_terms` terms one after the other in f32, and the sums of the blocks in f64. The relative error of a sum of
/// terms of one sign is then below 1e-6, whatever their number. The length of a block is a constant, so the result
/// does not depend on the number of threads. Other reductions, and sums of f64 and integers, stay in their own type.
namespace lathe {

/// Terms that are added one after the other before their sum joins the total.
inline constexpr std::int64_t block_terms = 32;

/// The type of the total of a reduction that is computed in `compute`.
DType total_type(ScalarOp op, DType compute);
/// Returns whether one accumulator of `terms` (empty: unknown) needs blocks.
bool adds_in_blocks(ScalarOp op, DType compute, std::optional<std::int64_t> terms);

/// The total of blocks, in registers.
class BlockTotal {
 public:
  /// `identity` has the type and lanes of the blocks.
  BlockTotal(kernel::Builder& b, ScalarOp op, kernel::Value identity);
  void add(kernel::Value block);
  /// In the type of the blocks.
  kernel::Value get() const;

 private:
  kernel::Builder* b_;
  ScalarOp op_;
  DType compute_;
  kernel::Var total_;
};

/// Calls body(i) for i = lo, lo + step, ... below hi, and `end_of_block` after every `block_terms` iterations and
/// after the last one.
void for_blocks(kernel::Builder& b, kernel::Builder::Bound lo, kernel::Builder::Bound hi, std::int64_t step,
                const kernel::Builder::Body& body, const std::function<void()>& end_of_block);

}  // namespace lathe
