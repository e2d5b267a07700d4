#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

/// Evaluates one lane of dot_pairs as VDPBF16PS does: fma(a[0], b[0], fma(a[1], b[1], c)) in f32. Subnormal operands
/// are flushed to signed zero, as are results of either fma that are subnormal after rounding to 24 bits.
Scalar evaluate_dot_pair(const Scalar* a, const Scalar* b, Scalar c);

/// Returns term 0, 1 or 2 of the bf16 terms that sum to an f32. The first two are rounded to nearest of the
/// remainder, ties away from zero. A subnormal term may lose its last bits. If x is infinite or NaN, or its first
/// term rounds to infinity, the last term is NaN with unspecified bits, and the terms do not sum to x.
Scalar evaluate_bf16_term(Scalar x, std::int64_t term);

/// Lane i: sum[i] + a[2i+1] * b[2i+1] + a[2i] * b[2i], see evaluate_dot_pair.
struct DotPairs {
  Type type{};  ///< f32
  ValueId a = none, b = none, sum = none;

  static DotPairs of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static DotPairs parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord dot_pairs_record;

/// Term `term` of the elements of a and b, interleaved, as bf16: see evaluate_bf16_term.
struct SplitBf16 {
  Type type{};  ///< bf16, with twice the lanes of each operand
  ValueId a = none, b = none;
  std::int64_t term = 0;

  static SplitBf16 of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static SplitBf16 parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord split_bf16_record;

inline constexpr int bf16_terms = 3;  ///< number of terms whose sum is an f32

/// a and b: bf16, with twice the lanes of `sum`, which is f32.
Value dot_pairs(Builder& builder, Value a, Value b, Value sum);
/// Returns term 0, 1 or 2 of two f32 vectors of equal lanes: lane 2i is from a[i], lane 2i+1 from b[i].
Value split_bf16(Builder& builder, Value a, Value b, int term);

}  // namespace lathe::kernel
