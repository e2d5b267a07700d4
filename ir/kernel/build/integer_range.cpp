#include "ir/kernel/build/integer_range.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace lathe::kernel {

namespace {

/// Evaluates an operation whose extremes are at the ends of the ranges. Returns the full range if it overflows there.
template <class Operation>
Range at_ends(const Range& a, const Range& b, const Operation& operation) {
  Range r{INT64_MAX, INT64_MIN};
  for (const std::int64_t x : {a.lo, a.hi})
    for (const std::int64_t y : {b.lo, b.hi}) {
      const std::optional<std::int64_t> n = operation(x, y);
      if (!n) return {};
      r = {std::min(r.lo, *n), std::max(r.hi, *n)};
    }
  return r;
}

/// Returns the largest magnitude in the range. INT64_MIN is clamped to INT64_MAX.
std::int64_t magnitude(const Range& a) {
  return a.lo == INT64_MIN ? INT64_MAX : std::max(std::abs(a.lo), std::abs(a.hi));
}

/// Truncating division; x / 0 = 0.
Range div(const Range& a, const Range& b) {
  if (b.lo >= 1 && b.is_one()) return {a.lo / b.lo, a.hi / b.lo};
  if (b.lo >= 1) return at_ends(a, b, [](std::int64_t x, std::int64_t y) { return std::optional(x / y); });
  if (a.lo == INT64_MIN) return {};
  const std::int64_t most = magnitude(a);
  return b.lo >= 0 ? Range{std::min<std::int64_t>(a.lo, 0), std::max<std::int64_t>(a.hi, 0)} : Range{-most, most};
}

/// The result has the sign of a, and a magnitude of at most |a| and below |b|; x rem 0 = 0. If all dividends have the
/// same quotient, the range keeps its width.
Range rem(const Range& a, const Range& b) {
  if (b.is_one() && b.lo > 0 && a.lo >= 0 && a.lo / b.lo == a.hi / b.lo) return {a.lo % b.lo, a.hi % b.lo};
  const std::int64_t of_b = magnitude(b), most = of_b == INT64_MAX ? of_b : std::max<std::int64_t>(of_b - 1, 0);
  return {std::clamp<std::int64_t>(a.lo, -most, 0), std::clamp<std::int64_t>(a.hi, 0, most)};
}

Range bit_and(const Range& a, const Range& b) {
  if (a.lo < 0 && b.lo < 0) return {};
  if (a.lo < 0 || b.lo < 0) return {0, a.lo < 0 ? b.hi : a.hi};
  return {0, std::min(a.hi, b.hi)};
}

/// Of | and ^: no bit above those of the larger operand.
Range bit_or(const Range& a, const Range& b) {
  if (a.lo < 0 || b.lo < 0) return {};
  const auto most = static_cast<std::uint64_t>(std::max(a.hi, b.hi));
  return {0, static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(most)) - 1)};
}

constexpr Range no{0, 0}, yes{1, 1}, open{0, 1};

bool is_false(const Range& a) { return a == no; }
bool is_true(const Range& a) { return !a.holds(0); }
Range inverse(const Range& a) { return is_false(a) ? yes : is_true(a) ? no : open; }

Range equal(const Range& a, const Range& b) {
  if (a.hi < b.lo || b.hi < a.lo) return no;
  return a.is_one() && a == b ? yes : open;
}

}  // namespace

Range mul(const Range& a, const Range& b) {
  if (a.is_one() && !b.is_one()) return mul(b, a);
  Range r;
  if (b.is_one()) {
    const bool wraps = __builtin_mul_overflow(a.lo, b.lo, &r.lo) || __builtin_mul_overflow(a.hi, b.lo, &r.hi);
    if (!wraps && b.lo < 0) std::swap(r.lo, r.hi);
    return wraps ? Range{} : r;
  }
  return at_ends(a, b, [](std::int64_t x, std::int64_t y) {
    std::int64_t n = 0;
    const bool wraps = __builtin_mul_overflow(x, y, &n);
    return wraps ? std::nullopt : std::optional(n);
  });
}

Range join(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Range range_of(ScalarOp op, std::span<const Range> args) {
  const Range& a = args[0];
  switch (op) {
    case ScalarOp::add: return add(a, args[1]);
    case ScalarOp::sub: return sub(a, args[1]);
    case ScalarOp::mul: return mul(a, args[1]);
    case ScalarOp::div: return div(a, args[1]);
    case ScalarOp::rem: return rem(a, args[1]);
    case ScalarOp::min: return {std::min(a.lo, args[1].lo), std::min(a.hi, args[1].hi)};
    case ScalarOp::max: return {std::max(a.lo, args[1].lo), std::max(a.hi, args[1].hi)};
    case ScalarOp::neg: return sub({0, 0}, a);
    case ScalarOp::abs:
      return a.lo == INT64_MIN ? Range{} : Range{a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, magnitude(a)};
    case ScalarOp::sign: return {std::clamp<std::int64_t>(a.lo, -1, 1), std::clamp<std::int64_t>(a.hi, -1, 1)};
    case ScalarOp::bit_and: return bit_and(a, args[1]);
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor: return bit_or(a, args[1]);
    case ScalarOp::select: return is_false(a) ? args[2] : is_true(a) ? args[1] : join(args[1], args[2]);
    case ScalarOp::eq: return equal(a, args[1]);
    case ScalarOp::ne: return inverse(equal(a, args[1]));
    case ScalarOp::lt: return a.hi < args[1].lo ? yes : a.lo >= args[1].hi ? no : open;
    case ScalarOp::le: return a.hi <= args[1].lo ? yes : a.lo > args[1].hi ? no : open;
    case ScalarOp::logical_and:
      return is_false(a) || is_false(args[1]) ? no : is_true(a) && is_true(args[1]) ? yes : open;
    case ScalarOp::logical_or:
      return is_true(a) || is_true(args[1]) ? yes : is_false(a) && is_false(args[1]) ? no : open;
    case ScalarOp::logical_not: return inverse(a);
    default: return {};
  }
}

Range range_of(ScalarOp op, const Range& a, const Range& b) {
  const Range args[] = {a, b};
  return range_of(op, args);
}

}  // namespace lathe::kernel
