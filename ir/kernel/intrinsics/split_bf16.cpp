#include "ir/kernel/intrinsics/split_bf16.h"

#include <bit>

#include "ir/kernel/build/builder_checks.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

Scalar evaluate_dot_pair(const Scalar* a, const Scalar* b, Scalar c) {
  float sum = flushed(c.real);
  for (const int i : {1, 0}) sum = flushed_fma(a[i].real, b[i].real, sum);
  return {.real = sum};
}

Scalar evaluate_bf16_term(Scalar x, std::int64_t term) {
  constexpr std::uint32_t high = 0xffff0000, half = 0x8000;
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const auto nearest = [&](float value) { return std::bit_cast<float>((bits(value) + half) & high); };
  const auto value = static_cast<float>(x.real);
  const float first = nearest(value), remainder = value - first, second = nearest(remainder);
  const float terms[] = {first, second, remainder - second};
  return {.real = std::bit_cast<float>(bits(terms[term]) & high)};
}

constinit const IntrinsicRecord dot_pairs_record =
    intrinsic_record<DotPairs>({.name = "dot_pairs", .args = {3, 3}, .gives_value = true, .is_pure = true});

DotPairs DotPairs::of(const Instruction& in) { return {in.type, in.args[0], in.args[1], in.args[2]}; }
Instruction DotPairs::instruction() const {
  return intrinsic_instruction({.record = &dot_pairs_record}, {a, b, sum}, type);
}

void DotPairs::verify(const IntrinsicRules& rules) const {
  for (const ValueId pairs : {a, b}) rules.want(pairs, {bf16, 2 * type.lanes}, "an operand of dot_pairs");
  rules.want(sum, type, "the sum of dot_pairs");
  want(rules.kernel, type, {f32, type.lanes}, "a dot_pairs");
}

std::string DotPairs::text(const IntrinsicText& text) const { return plain_text("dot_pairs", {a, b, sum}, text); }

DotPairs DotPairs::parse(IntrinsicReader& in) {
  DotPairs dot{.a = in.value()};
  in.expect(",");
  dot.b = in.value();
  in.expect(",");
  dot.sum = in.value();
  return dot;
}

void DotPairs::interpret(const IntrinsicRun& run, ValueId id, Thread& t) const {
  const Scalar *left = run.lanes(a, t), *right = run.lanes(b, t), *sums = run.lanes(sum, t);
  Scalar* out = run.lanes(id, t);
  for (int i = 0; i < type.lanes; ++i) out[i] = evaluate_dot_pair(left + 2 * i, right + 2 * i, sums[i]);
}

Value dot_pairs(Builder& builder, Value a, Value b, Value sum) {
  const Type pairs{bf16, 2 * sum.type.lanes};
  require(a.type == pairs && b.type == pairs && sum.type.scalar == f32, "dot_pairs of {}, {}, {}", a.type, b.type,
          sum.type);
  return builder.machine(DotPairs{sum.type, a.id, b.id, sum.id}.instruction());
}

constinit const IntrinsicRecord split_bf16_record = intrinsic_record<SplitBf16>(
    {.name = "split_bf16", .args = {2, 2}, .attributes = 1, .gives_value = true, .is_pure = true});

SplitBf16 SplitBf16::of(const Instruction& in) {
  return {in.type, in.args[0], in.args[1], in.machine->attributes[0]};
}
Instruction SplitBf16::instruction() const {
  return intrinsic_instruction({.record = &split_bf16_record, .attributes = {term}}, {a, b}, type);
}

void SplitBf16::verify(const IntrinsicRules& rules) const {
  for (const ValueId from : {a, b}) rules.want(from, {f32, type.lanes / 2}, "an operand of split_bf16");
  want(rules.kernel, type, {bf16, rules.value(a).type.lanes * 2}, "a split_bf16");
  rules.require(term >= 0 && term < bf16_terms, "bf16_terms", "term {} of an f32", term);
}

std::string SplitBf16::text(const IntrinsicText& text) const {
  return plain_text(fmt::format("split_bf16.{}", term), {a, b}, text);
}

SplitBf16 SplitBf16::parse(IntrinsicReader& in) {
  SplitBf16 split{.term = in.suffix()};
  split.a = in.value();
  in.expect(",");
  split.b = in.value();
  return split;
}

void SplitBf16::interpret(const IntrinsicRun& run, ValueId id, Thread& t) const {
  const Scalar *even = run.lanes(a, t), *odd = run.lanes(b, t);
  Scalar* out = run.lanes(id, t);
  for (int i = 0; i < type.lanes / 2; ++i) {
    out[2 * i] = evaluate_bf16_term(even[i], term);
    out[2 * i + 1] = evaluate_bf16_term(odd[i], term);
  }
}

Value split_bf16(Builder& builder, Value a, Value b, int term) {
  require(a.type == b.type && a.type.scalar == f32, "split_bf16 of {}, {}", a.type, b.type);
  return builder.machine(SplitBf16{{bf16, 2 * a.type.lanes}, a.id, b.id, term}.instruction());
}

namespace {
constexpr const IntrinsicRecord* pair_records[] = {&dot_pairs_record, &split_bf16_record};
}  // namespace
extern const IntrinsicFamily pair_intrinsics;
constinit const IntrinsicFamily pair_intrinsics{.operations = pair_records};

}  // namespace lathe::kernel
