#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/recognize/formulas.h"
#include "passes/transforms/recognize/product.h"

namespace lathe::ir {

using canonical::is;
using canonical::operand_of;

namespace {

/// Whether a value is elements start .. stop of the last dim of x.
bool is_part(const Value& value, const Value& x, const Dim& start, const Dim& stop) {
  if (!is(value, ops::slice) || !same(operand_of(value), x)) return false;
  const canonical::Range range = canonical::range_of(value.node(), x.shape());
  return range.dim == x.rank() - 1 && range.step == 1 && range.start == start && range.stop == stop;
}

/// Returns x for concat(-x2, x1) of the halves x1, x2 of its last dim.
std::optional<Value> rotated(const Value& value) {
  if (!is(value, ops::concat) || value.node().operands.size() != 2) return std::nullopt;
  const Value negative = operand_of(value, 0), first = operand_of(value, 1);
  if (!is(negative, ops::neg) || !is(first, ops::slice)) return std::nullopt;
  const Value x = operand_of(first);
  const int last = x.rank() - 1;
  if (rules::normalize_axis(value.node().attrs.get<std::int64_t>("dim"), x.rank()) != last) return std::nullopt;
  const Dim size = x.shape()[last];
  const auto half = size.divided_by(2);
  const bool is_rotated = half && is_part(first, x, 0, *half) && is_part(operand_of(negative), x, *half, size);
  return is_rotated ? std::optional(x) : std::nullopt;
}

/// Whether a value broadcasts to the shape of x.
bool fits(const Value& value, const Value& x) {
  if (value.rank() > x.rank()) return false;
  for (int k = 1; k <= value.rank(); ++k) {
    const Dim& size = value.shape()[value.rank() - k];
    if (!size.is(1) && !(size == x.shape()[x.rank() - k])) return false;
  }
  return true;
}

/// Returns the other factor of a product of two values.
std::optional<Value> times(const Value& product, const Value& factor) {
  if (!is(product, ops::mul)) return std::nullopt;
  for (const int i : {0, 1})
    if (same(operand_of(product, i), factor)) return operand_of(product, 1 - i);
  return std::nullopt;
}

}  // namespace

std::optional<Value> recognize_rope(const Node& node, std::span<const Value> operands) {
  if (node.op != &ops::add) return std::nullopt;
  for (const int i : {0, 1}) {
    const Value &plain = operands[i], &turned = operands[1 - i];
    if (!is(turned, ops::mul)) continue;
    for (const int k : {0, 1}) {
      const auto x = rotated(operand_of(turned, k));
      const auto cos = x ? times(plain, *x) : std::nullopt;
      if (!cos) continue;
      const Value sin = operand_of(turned, 1 - k);
      if (fits(*cos, *x) && fits(sin, *x)) return x->builder().add(ops::rope, {*x, *cos, sin});
    }
  }
  return std::nullopt;
}

}  // namespace lathe::ir
