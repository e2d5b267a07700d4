#pragma once

#include <cstdint>
#include <span>

#include "ir/support/scalar_op.h"

namespace lathe::kernel {

/// All integers from lo to hi. Of a condition: {0, 0} is false, {1, 1} true, what holds 0 and something else open.
struct Range {
  std::int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool operator==(const Range&) const = default;
  bool holds(std::int64_t n) const { return lo <= n && n <= hi; }
  bool is_one() const { return lo == hi; }
  bool fits_32_bits() const { return lo >= INT32_MIN && hi <= INT32_MAX; }
};

/// A range that holds what the operation gives for i64 operands, or conditions, in these ranges: all integers where
/// nothing better is known, or where it may wrap.
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

/// The least range that holds both.
Range join(const Range& a, const Range& b);

}  // namespace lathe::kernel
