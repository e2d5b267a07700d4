#include "ir/kernel/intrinsics/fast_math.h"

#include <algorithm>
#include <cmath>

#include "ir/kernel/build/builder_checks.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

constinit const IntrinsicRecord fast_exp_record =
    intrinsic_record<FastExp>({.name = "fast_exp", .args = {1, 1}, .gives_value = true, .is_pure = true});

FastExp FastExp::of(const Instruction& in) { return {in.type, in.args[0]}; }
Instruction FastExp::instruction() const {
  return intrinsic_instruction({.record = &fast_exp_record}, {value}, type);
}

void FastExp::verify(const IntrinsicRules& rules) const {
  want(rules.kernel, type, {f32, type.lanes}, "a fast_exp");
  rules.want(value, type, "the operand of fast_exp");
}

std::string FastExp::text(const IntrinsicText& text) const { return plain_text("fast_exp", {value}, text); }

FastExp FastExp::parse(IntrinsicReader& in) { return {.value = in.value()}; }

void FastExp::interpret(const IntrinsicRun& run, ValueId id, Thread& t) const {
  const Scalar* from = run.lanes(value, t);
  Scalar* to = run.lanes(id, t);
  for (int i = 0; i < type.lanes; ++i) to[i] = evaluate(ScalarOp::exp, f32, {from + i, 1});
}

Value fast_exp(Builder& builder, Value value) {
  require(value.type.scalar == f32, "fast_exp of {}", value.type);
  return builder.machine(FastExp{value.type, value.id}.instruction());
}

constinit const IntrinsicRecord fast_exp2_record =
    intrinsic_record<FastExp2>({.name = "fast_exp2", .args = {1, 1}, .gives_value = true, .is_pure = true});

FastExp2 FastExp2::of(const Instruction& in) { return {in.type, in.args[0]}; }
Instruction FastExp2::instruction() const {
  return intrinsic_instruction({.record = &fast_exp2_record}, {value}, type);
}

void FastExp2::verify(const IntrinsicRules& rules) const {
  want(rules.kernel, type, {f32, type.lanes}, "a fast_exp2");
  rules.want(value, type, "the operand of fast_exp2");
}

std::string FastExp2::text(const IntrinsicText& text) const { return plain_text("fast_exp2", {value}, text); }

FastExp2 FastExp2::parse(IntrinsicReader& in) { return {.value = in.value()}; }

/// Rounds the result in f64 to f32.
void FastExp2::interpret(const IntrinsicRun& run, ValueId id, Thread& t) const {
  const Scalar* from = run.lanes(value, t);
  Scalar* to = run.lanes(id, t);
  for (int i = 0; i < type.lanes; ++i) to[i].real = round_to(f32, std::exp2(from[i].real));
}

Value fast_exp2(Builder& builder, Value value) {
  require(value.type.scalar == f32, "fast_exp2 of {}", value.type);
  return builder.machine(FastExp2{value.type, value.id}.instruction());
}

constinit const IntrinsicRecord fast_div_record =
    intrinsic_record<FastDiv>({.name = "fast_div", .args = {2, 2}, .gives_value = true, .is_pure = true});

FastDiv FastDiv::of(const Instruction& in) { return {in.type, in.args[0], in.args[1]}; }
Instruction FastDiv::instruction() const {
  return intrinsic_instruction({.record = &fast_div_record}, {left, right}, type);
}

void FastDiv::verify(const IntrinsicRules& rules) const {
  want(rules.kernel, type, {f32, type.lanes}, "a fast_div");
  for (const ValueId operand : {left, right}) rules.want(operand, type, "an operand of fast_div");
}

std::string FastDiv::text(const IntrinsicText& text) const { return plain_text("fast_div", {left, right}, text); }

FastDiv FastDiv::parse(IntrinsicReader& in) {
  FastDiv div{.left = in.value()};
  in.expect(",");
  div.right = in.value();
  return div;
}

void FastDiv::interpret(const IntrinsicRun& run, ValueId id, Thread& t) const {
  const Scalar *a = run.lanes(left, t), *b = run.lanes(right, t);
  Scalar* to = run.lanes(id, t);
  for (int i = 0; i < type.lanes; ++i) {
    const Scalar operands[] = {a[i], b[i]};
    to[i] = evaluate(ScalarOp::div, f32, operands);
  }
}

Value fast_div(Builder& builder, Value left, Value right) {
  require(left.type.scalar == f32 && right.type.scalar == f32, "fast_div of {}, {}", left.type, right.type);
  const int lanes = std::max(left.type.lanes, right.type.lanes);
  left = builder.broadcast(left, lanes), right = builder.broadcast(right, lanes);
  return builder.machine(FastDiv{left.type, left.id, right.id}.instruction());
}

namespace {
constexpr const IntrinsicRecord* fast_math_records[] = {&fast_exp_record, &fast_exp2_record, &fast_div_record};
}  // namespace
extern const IntrinsicFamily fast_math_intrinsics;
constinit const IntrinsicFamily fast_math_intrinsics{.operations = fast_math_records};

}  // namespace lathe::kernel
