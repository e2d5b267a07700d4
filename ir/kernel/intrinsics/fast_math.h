#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

/// f32 exp by the hardware instruction, within about 2 + |x| units in the last place. Use it for results that are
/// then rounded to 16 bits. Results below 2^-126 may be zero; infinities and NaN are handled as in exp.
struct FastExp {
  Type type{};  ///< f32
  ValueId value = none;

  static FastExp of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static FastExp parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord fast_exp_record;

/// f32 2^x by the hardware instruction, within 2 units in the last place. Results below 2^-126 may be zero.
struct FastExp2 {
  Type type{};  ///< f32
  ValueId value = none;

  static FastExp2 of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static FastExp2 parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord fast_exp2_record;

/// f32 left / right, within 2 units in the last place for all magnitudes.
struct FastDiv {
  Type type{};  ///< f32
  ValueId left = none, right = none;

  static FastDiv of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static FastDiv parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord fast_div_record;

Value fast_exp(Builder& builder, Value value);
Value fast_exp2(Builder& builder, Value value);
/// Operands have equal lanes, or one is a scalar.
Value fast_div(Builder& builder, Value left, Value right);

}  // namespace lathe::kernel
