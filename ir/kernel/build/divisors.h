#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// What integer values are known to be multiples of, told value by value in the order of a kernel. `row * 768 + i`
/// with i stepping by 4 is a multiple of 4: an access there may take 4 elements at once.
class Divisors {
 public:
  /// A power of two that every lane of the value is known to be a multiple of: 2^30 for 0; 1 where nothing is known.
  std::int64_t of(ValueId id) const;
  /// A constant, or what is computed from values told before.
  void tell(ValueId id, const Instruction& instruction);
  void tell_index(const Loop& loop);

 private:
  void set(ValueId id, std::int64_t divisor);

  std::vector<std::int64_t> known_;
};

}  // namespace lathe::kernel
