#include <numbers>
#include <string>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/recognize/formulas.h"
#include "passes/transforms/recognize/product.h"

namespace lathe::ir {

using canonical::is;
using canonical::operand_of;

namespace {

/// Whether a value is `scale` times x to this power.
bool is_power(const Value& value, double scale, const Value& x, std::size_t power) {
  Product product = product_of(value);
  if (product.factors.size() != power || !is_rounded(product.scale, scale, x.dtype())) return false;
  while (product.take(x)) {
  }
  return product.factors.empty();
}

constexpr double cubic = 0.044715, tanh_scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

/// Whether a value is x + 0.044715 x^3.
bool is_cubic_sum(const Value& value, const Value& x) {
  if (!is(value, ops::add)) return false;
  for (const int i : {0, 1})
    if (same(operand_of(value, i), x) && is_power(operand_of(value, 1 - i), cubic, x, 3)) return true;
  return false;
}

/// Whether a value is sqrt(2 / pi) (x + 0.044715 x^3), also as sqrt(2 / pi) x (1 + 0.044715 x^2).
bool is_tanh_operand(const Value& value, const Value& x) {
  Product product = product_of(value);
  if (!is_rounded(product.scale, tanh_scale, x.dtype())) return false;
  if (product.factors.size() == 1) return is_cubic_sum(product.factors[0], x);
  if (product.factors.size() != 2 || !product.take(x)) return false;
  const auto sum = shifted(product.factors[0]);
  return sum && sum->number == 1 && is_power(sum->value, cubic, x, 2);
}

}  // namespace

std::optional<Value> recognize_gelu(const Node& node, std::span<const Value> operands) {
  if (node.op != &ops::mul && node.op != &ops::div) return std::nullopt;
  Product product = product_of(operands[0]);
  const Product right = product_of(operands[1]);
  if (node.op == &ops::div && !right.factors.empty()) return std::nullopt;
  product.scale = node.op == &ops::div ? product.scale / right.scale : product.scale * right.scale;
  product.factors.insert(product.factors.end(), right.factors.begin(), right.factors.end());
  if (product.scale != 0.5 || product.factors.size() != 2) return std::nullopt;
  for (const int i : {0, 1}) {
    const Value &x = product.factors[i], &gate = product.factors[1 - i];
    const auto sum = shifted(gate);
    if (!sum || sum->number != 1) continue;
    if (is(sum->value, ops::erf) && is_power(operand_of(sum->value), std::numbers::sqrt2 / 2, x, 1))
      return x.builder().add(ops::gelu, {x});
    if (is(sum->value, ops::tanh) && is_tanh_operand(operand_of(sum->value), x))
      return x.builder().add(ops::gelu, {x}, {{"approximate", std::string("tanh")}});
  }
  return std::nullopt;
}

std::optional<Value> recognize_silu(const Node& node, std::span<const Value> operands) {
  if (node.op != &ops::mul) return std::nullopt;
  for (const int i : {0, 1})
    if (is(operands[i], ops::sigmoid) && same(operand_of(operands[i]), operands[1 - i]))
      return operands[i].builder().add(ops::silu, {operands[1 - i]});
  return std::nullopt;
}

}  // namespace lathe::ir
