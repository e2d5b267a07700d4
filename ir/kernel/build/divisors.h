#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Tracks known divisors of integer values. Values are recorded in kernel order. For example `row * 768 + i` with i
/// stepping by 4 is a multiple of 4, so an access at that index can move 4 elements at a time.
class Divisors {
 public:
  /// Returns a power of two that divides every lane of the value: 2^30 for 0, and 1 if nothing is known.
  std::int64_t of(ValueId id) const;
  /// Records a constant, or an instruction whose operands are already recorded.
  void tell(ValueId id, const Instruction& instruction);
  void tell_index(const Loop& loop);

 private:
  void set(ValueId id, std::int64_t divisor);

  std::vector<std::int64_t> known_;
};

}  // namespace lathe::kernel
