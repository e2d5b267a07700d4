#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/recognize/formulas.h"
#include "passes/transforms/recognize/product.h"

namespace lathe::ir {

using canonical::is;
using canonical::number;
using canonical::operand_of;

namespace {

/// Returns the operand of a mean over its last dim, which the result keeps.
std::optional<Value> mean_of(const Value& value) {
  if (!is(value, ops::mean)) return std::nullopt;
  const Attributes& attrs = value.node().attrs;
  const Value a = operand_of(value);
  const auto dims = attrs.get<std::vector<std::int64_t>>("dims");
  if (!attrs.get<bool>("keepdim") || dims.size() != 1) return std::nullopt;
  return rules::normalize_axis(dims[0], a.rank()) == a.rank() - 1 ? std::optional(a) : std::nullopt;
}

/// Returns a for 1 / sqrt(a).
std::optional<Value> under_inverse_root(const Value& value) {
  if (is(value, ops::rsqrt)) return operand_of(value);
  if (is(value, ops::pow) && number(operand_of(value, 1)) == -0.5) return operand_of(value);
  const bool is_inverse = is(value, ops::div) && number(operand_of(value, 0)) == 1.0;
  if (!is_inverse && !is(value, ops::reciprocal)) return std::nullopt;
  const Value root = operand_of(value, is_inverse ? 1 : 0);
  return is(root, ops::sqrt) ? std::optional(operand_of(root)) : std::nullopt;
}

/// A value divided by the root of its mean square along the last dim.
struct Normalized {
  Value value;
  double eps;
};

/// Returns the eps of `radicand` = mean(value^2) + eps.
std::optional<Normalized> normalized_by(const Value& value, const Value& radicand) {
  const auto sum = shifted(radicand);
  const auto square = sum && sum->number >= 0 && std::isfinite(sum->number) ? mean_of(sum->value) : std::nullopt;
  if (!square) return std::nullopt;
  Product product = product_of(*square);
  const bool is_square = product.scale == 1 && product.factors.size() == 2 && product.take(value) &&
                         product.take(value) && square->shape() == value.shape();
  return is_square ? std::optional(Normalized{value, sum->number}) : std::nullopt;
}

std::optional<Normalized> normalized(const Op& op, const Value& left, const Value& right) {
  if (&op == &ops::div && is(right, ops::sqrt)) return normalized_by(left, operand_of(right));
  if (&op != &ops::mul) return std::nullopt;
  for (const bool swapped : {false, true}) {
    const Value &value = swapped ? right : left, &factor = swapped ? left : right;
    if (const auto radicand = under_inverse_root(factor))
      if (const auto found = normalized_by(value, *radicand)) return found;
  }
  return std::nullopt;
}

std::optional<Normalized> normalized(const Value& value) {
  if (!is(value, ops::mul) && !is(value, ops::div)) return std::nullopt;
  return normalized(*value.node().op, operand_of(value, 0), operand_of(value, 1));
}

/// Returns x for x - mean(x).
std::optional<Value> centered(const Value& value) {
  if (!is(value, ops::sub)) return std::nullopt;
  const Value x = operand_of(value, 0);
  const auto mean = mean_of(operand_of(value, 1));
  return mean && same(*mean, x) ? std::optional(x) : std::nullopt;
}

/// Whether a value has one number per element of the last dim of x.
bool is_vector_of(const Value& value, const Value& x) {
  return value.rank() == 1 && value.dtype() == x.dtype() && value.shape()[0] == x.shape()[x.rank() - 1];
}

/// Returns eps without the digits that rounding to f32 has added: 1e-05 for 9.99999974737875e-06.
double shortest(double eps, DType dtype) {
  return dtype == f32 ? std::stod(fmt::format("{}", static_cast<float>(eps))) : eps;
}

}  // namespace

std::optional<Value> recognize_rms_norm(const Node& node, std::span<const Value> operands) {
  if (operands.size() != 2) return std::nullopt;
  if (const auto found = normalized(*node.op, operands[0], operands[1])) {
    if (centered(found->value)) return std::nullopt;
    return found->value.builder().add(ops::rms_norm, {found->value},
                                      {{"eps", shortest(found->eps, node.type.dtype)}});
  }
  if (node.op != &ops::mul) return std::nullopt;
  for (const int i : {0, 1}) {
    const Value &norm = operands[i], &weight = operands[1 - i];
    if (!is(norm, ops::rms_norm) || norm.node().operands.size() != 1 || !is_vector_of(weight, norm)) continue;
    return norm.builder().add(ops::rms_norm, {operand_of(norm), weight}, norm.node().attrs);
  }
  return std::nullopt;
}

std::optional<Value> recognize_layer_norm(const Node& node, std::span<const Value> operands) {
  if (node.op != &ops::add) return std::nullopt;
  for (const int i : {0, 1}) {
    const Value &scaled = operands[i], &bias = operands[1 - i];
    if (!is(scaled, ops::mul)) continue;
    for (const int k : {0, 1}) {
      const Value weight = operand_of(scaled, 1 - k);
      const auto found = normalized(operand_of(scaled, k));
      const auto x = found ? centered(found->value) : std::nullopt;
      if (!x || !is_vector_of(weight, *x) || !is_vector_of(bias, *x)) continue;
      return x->builder().add(ops::layer_norm, {*x, weight, bias}, {{"eps", shortest(found->eps, node.type.dtype)}});
    }
  }
  return std::nullopt;
}

}  // namespace lathe::ir
