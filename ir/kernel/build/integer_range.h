#pragma once

#include <cstdint>
#include <span>

#include "ir/support/numbers/scalar_op.h"

namespace lathe::kernel {

/// All integers from lo to hi. For a condition, {0, 0} is false and {1, 1} is true; a range with 0 and another value
/// is undecided.
struct Range {
  std::int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool operator==(const Range&) const = default;
  bool holds(std::int64_t n) const { return lo <= n && n <= hi; }
  bool is_one() const { return lo == hi; }
  bool fits_32_bits() const { return lo >= INT32_MIN && hi <= INT32_MAX; }
};

/// Returns a range that contains the op's result for i64 operands, or conditions, in these ranges. Returns all
/// integers if no tighter range is known or the op may wrap.
Range range_of(ScalarOp op, std::span<const Range> args);
Range range_of(ScalarOp op, const Range& a, const Range& b);

inline Range add(const Range& a, const Range& b) {
  Range r;
  return __builtin_add_overflow(a.lo, b.lo, &r.lo) || __builtin_add_overflow(a.hi, b.hi, &r.hi) ? Range{} : r;
}
inline Range sub(const Range& a, const Range& b) {
  Range r;
  return __builtin_sub_overflow(a.lo, b.hi, &r.lo) || __builtin_sub_overflow(a.hi, b.lo, &r.hi) ? Range{} : r;
}
Range mul(const Range& a, const Range& b);

/// Returns the smallest range that contains both.
Range join(const Range& a, const Range& b);

}  // namespace lathe::kernel
