#pragma once

#include "ir/kernel/builder.h"
#include "ir/kernel/machine/record.h"
#include "ir/kernel/scalar_eval.h"

namespace lathe::kernel {

/// One lane of dot_pairs, as VDPBF16PS has it: fma(a[0], b[0], fma(a[1], b[1], c)) in f32, where subnormal operands
/// count as zeros of their sign, and so do results of either fma that are so small when rounded to 24 bits.
Scalar evaluate_dot_pair(const Scalar* a, const Scalar* b, Scalar c);

/// Slice 0, 1 or 2 of an f32, bf16 whose sum it is: the first two are the nearest to what is left, away from zero
/// between two. A subnormal slice may lose its last bits. Of infinities, of NaN and of what the first slice rounds to
/// infinity the last slice is NaN, whose bits are not stated, and the sum is nothing.
Scalar evaluate_slice(Scalar x, std::int64_t slice);

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

/// Slice `slice` of the f32 of a and b in turn, as bf16: see evaluate_slice.
struct Bf16Slices {
  Type type{};  ///< bf16, of twice the lanes of each
  ValueId a = none, b = none;
  std::int64_t slice = 0;

  static Bf16Slices of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord bf16_slices_record;

inline constexpr int tile_slices = 3;  ///< that an f32 is the sum of

/// a and b are bf16 of twice the lanes of `sum`, which is f32.
Value dot_pairs(Builder& builder, Value a, Value b, Value sum);
/// Slice 0, 1 or 2 of f32 vectors of the same lanes: lane 2i is of a[i], lane 2i+1 of b[i].
Value bf16_slices(Builder& builder, Value a, Value b, int slice);

}  // namespace lathe::kernel
