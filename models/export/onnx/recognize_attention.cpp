#include "models/export/onnx/recognize_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::onnx {

namespace {

using ir::Value;
using ir::canonical::is;
using ir::canonical::number;
using ir::canonical::operand_of;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// If each element is its own index along one dim, returns this dim, counted from the end: -1.
std::optional<int> index_dim(const Value& value) {
  const auto& attrs = value.node().attrs;
  if (is(value, ir::ops::iota))
    return ir::rules::normalize_axis(attrs.get<std::int64_t>("dim"), value.rank()) - value.rank();
  if (!is(value, ir::ops::unsqueeze)) return std::nullopt;
  const auto inner = index_dim(operand_of(value));
  const int added = ir::rules::normalize_axis(attrs.get<std::int64_t>("dim"), value.rank()) - value.rank();
  return inner && added >= *inner ? std::optional(*inner - 1) : inner;
}

/// Whether a value compares the index of keys, in the last dim, with that of queries.
bool compares(const Value& value, const ir::Op& op, int left, int right) {
  return is(value, op) && index_dim(operand_of(value, 0)) == left && index_dim(operand_of(value, 1)) == right;
}

/// Whether a mask is true where the key is not after the query.
bool is_causal(const Value& seen) {
  return compares(seen, ir::ops::le, -1, -2) ||
         (is(seen, ir::ops::logical_not) && compares(operand_of(seen), ir::ops::lt, -2, -1));
}
/// Whether a mask is true where the key is after the query.
bool hides_later_keys(const Value& hidden) {
  return compares(hidden, ir::ops::lt, -2, -1) ||
         (is(hidden, ir::ops::logical_not) && compares(operand_of(hidden), ir::ops::le, -1, -2));
}

/// The masks of scores that Attention has too.
struct Masks {
  bool is_causal = false;
  std::optional<Value> bias = {};
};

/// Scores before their masks: products of queries and keys, times a factor.
struct Scores {
  Value q, k;
  double scale;
};

std::optional<Scores> plain_scores(const Value& value) {
  double scale = 1;
  Value product = value;
  for (const int i : {0, 1}) {
    const bool is_divided = is(value, ir::ops::div) && i == 0;
    if (!is(value, ir::ops::mul) && !is_divided) continue;
    const auto factor = number(operand_of(value, 1 - i));
    if (!factor || !is(operand_of(value, i), ir::ops::matmul)) continue;
    product = operand_of(value, i);
    scale = is_divided ? 1 / factor->real() : factor->real();
  }
  if (!is(product, ir::ops::matmul)) return std::nullopt;
  const Value keys = operand_of(product, 1);
  const auto order = keys.rank() == 4 ? ir::canonical::permutation(keys.node()) : std::nullopt;
  if (!order || *order != std::vector<int>{0, 1, 3, 2}) return std::nullopt;
  return Scores{operand_of(product, 0), operand_of(keys), scale};
}

/// Splits scores from their masks. Nothing for other masks.
std::optional<Scores> split(const Value& value, Masks& masks) {
  if (const auto scores = plain_scores(value)) return scores;
  if (is(value, ir::ops::masked_fill) && value.node().attrs.get<Number>("value").real() == -infinity &&
      hides_later_keys(operand_of(value, 1))) {
    masks.is_causal = true;
    return split(operand_of(value), masks);
  }
  if (is(value, ir::ops::where) && number(operand_of(value, 2)) == Number(-infinity) &&
      is_causal(operand_of(value))) {
    masks.is_causal = true;
    return split(operand_of(value, 1), masks);
  }
  if (!is(value, ir::ops::add)) return std::nullopt;
  for (const int i : {0, 1})
    if (const auto scores = plain_scores(operand_of(value, i))) {
      masks.bias = operand_of(value, 1 - i);
      return scores;
    }
  return std::nullopt;
}

}  // namespace

bool is_onnx_attention(std::span<const Value> operands, bool is_causal) {
  const Shape &q = operands[0].shape(), &k = operands[1].shape(), &v = operands[2].shape();
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return false;
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || (q[1] != k[1] && !k[1].is(1))) return false;
  if (is_causal && q[2] != k[2]) return false;
  if (operands.size() == 3) return true;
  if (operands[3].dtype() == boolean) return false;
  const Shape& mask = operands[3].shape();
  const Dim sizes[] = {q[0], q[1], q[2], k[2]};
  if (mask.rank() < 2 || mask.rank() > 4) return false;
  for (int i = 0; i < mask.rank(); ++i)
    if (const Dim& size = mask[i]; !size.is(1) && size != sizes[4 - mask.rank() + i]) return false;
  return true;
}

std::optional<Value> recognized_attention(const ir::Node& node, std::span<const Value> operands) {
  // The scale of Attention is an f32.
  if (node.op != &ir::ops::matmul || node.type.dtype == f64 || !is(operands[0], ir::ops::softmax))
    return std::nullopt;
  const ir::Attributes& softmax = operands[0].node().attrs;
  const int rank = operands[0].rank();
  if (softmax.get<bool>("zero_masked") ||
      ir::rules::normalize_axis(softmax.get<std::int64_t>("dim"), rank) != rank - 1)
    return std::nullopt;
  Masks masks;
  const auto scores = split(operand_of(operands[0]), masks);
  if (!scores) return std::nullopt;
  std::vector<Value> all{scores->q, scores->k, operands[1]};
  if (masks.bias) all.push_back(*masks.bias);
  if (!is_onnx_attention(all, masks.is_causal)) return std::nullopt;
  return ir::attention(scores->q, scores->k, operands[1], masks.bias, scores->scale, masks.is_causal);
}

}  // namespace lathe::onnx
