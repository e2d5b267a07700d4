#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/machine/record.h"

namespace lathe::kernel {

/// One lane of dot_pairs, as VDPBF16PS has it: fma(a[0], b[0], fma(a[1], b[1], c)) in f32, where subnormal operands
/// count as zeros of their sign, and so do results of either fma that are so small when rounded to 24 bits.
Scalar evaluate_dot_pair(const Scalar* a, const Scalar* b, Scalar c);

/// Term 0, 1 or 2 of an f32, bf16 whose sum it is: the first two are the nearest to what is left, away from zero
/// between two. A subnormal term may lose its last bits. Of infinities, of NaN and of what the first term rounds to
/// infinity the last term is NaN, whose bits are not stated, and the sum is nothing.
Scalar evaluate_bf16_term(Scalar x, std::int64_t term);

/// Lane i: sum[i] + a[2i+1] * b[2i+1] + a[2i] * b[2i], see evaluate_dot_pair.
struct DotPairs {
  Type type{};  ///< f32
  ValueId a = none, b = none, sum = none;

  static DotPairs of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord dot_pairs_record;

/// Term `term` of the f32 of a and b in turn, as bf16: see evaluate_bf16_term.
struct SplitBf16 {
  Type type{};  ///< bf16, of twice the lanes of each
  ValueId a = none, b = none;
  std::int64_t term = 0;

  static SplitBf16 of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord split_bf16_record;

inline constexpr int bf16_terms = 3;  ///< that an f32 is the sum of

/// a and b are bf16 of twice the lanes of `sum`, which is f32.
Value dot_pairs(Builder& builder, Value a, Value b, Value sum);
/// Term 0, 1 or 2 of f32 vectors of the same lanes: lane 2i is of a[i], lane 2i+1 of b[i].
Value split_bf16(Builder& builder, Value a, Value b, int term);

}  // namespace lathe::kernel
