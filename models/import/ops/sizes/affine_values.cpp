#include "models/import/ops/sizes/affine_values.h"

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/constants.h"

namespace lathe::importing {

namespace {

namespace ops = ir::ops;

constexpr int most_depth = 64;  ///< ops between a value and an argument
constexpr std::size_t most_terms = 8;
constexpr std::int64_t largest = std::int64_t{1} << 31;

/// Returns a + times * b.
AffineValue scaled_sum(AffineValue a, const AffineValue& b, std::int64_t times) {
  a.offset = a.offset.unnamed() + b.offset.unnamed() * Dim(times);
  for (const auto& [argument, factor] : b.factors) a.factors[argument] += factor * times;
  std::erase_if(a.factors, [](const auto& factor) { return factor.second == 0; });
  return a;
}

std::optional<AffineValue> multiplied(const AffineValue& a, const AffineValue& b) {
  if (b.factors.empty() && b.offset.value()) return scaled_sum({}, a, *b.offset.value());
  if (a.factors.empty() && a.offset.value()) return scaled_sum({}, b, *a.offset.value());
  return std::nullopt;
}

/// Whether each element of a node is one of its operand.
bool shows_its_operand(const ir::Node& node) {
  return node.operands.size() == 1 && (node.op->as<ir::View>() || node.op == &ops::reshape ||
                                       node.op == &ops::contiguous || node.op == &ops::concat);
}

bool is_true(const ir::Graph& graph, ir::ValueId id) {
  const std::optional<Number> number = ir::uniform_value(graph, id);
  return number && *number == Number(1);
}

}  // namespace

bool is_small(const Dim& dim) {
  const std::vector<Dim::Term> terms = dim.terms();
  return terms.size() <= most_terms && std::ranges::all_of(terms, [](const Dim::Term& term) {
           return term.coefficient >= -largest && term.coefficient <= largest;
         });
}

std::optional<AffineValue> AffineReader::value(ir::ValueId id, int depth) {
  const auto found = known_.find(id.index);
  if (found != known_.end()) return found->second;
  std::optional<AffineValue> result = depth < most_depth ? computed(id, depth) : std::nullopt;
  const auto small = [](const auto& factor) { return is_small(Dim(factor.second)); };
  if (result && !(is_small(result->offset) && result->factors.size() <= most_terms &&
                  std::ranges::all_of(result->factors, small)))
    result.reset();
  return known_.emplace(id.index, std::move(result)).first->second;
}

std::optional<AffineValue> AffineReader::computed(ir::ValueId id, int depth) {
  const ir::Node& node = graph_[id];
  if (node.type.dtype != i64) return std::nullopt;
  if (node.op->as<ir::Argument>()) return AffineValue{.factors = {{id.index, 1}}};
  if (const std::optional<Number> number = ir::uniform_value(graph_, id))
    return number->is_i64() ? std::optional(AffineValue{.offset = number->integer()}) : std::nullopt;
  // A size is an element of an iota: Graph::dim_value().
  if (node.op == &ops::slice && graph_[node.operands[0]].op == &ops::iota && node.type.rank() == 1) {
    const Dim start = node.attrs.get<Dim>("start").unnamed();
    const bool is_from_end = start.value().value_or(0) < 0;
    return node.type.shape[0].is(1) && !is_from_end ? std::optional(AffineValue{.offset = start}) : std::nullopt;
  }
  if (shows_its_operand(node)) return value(node.operands[0], depth + 1);
  const bool adds = node.op == &ops::add, subtracts = node.op == &ops::sub;
  if (node.op != &ops::neg && node.op != &ops::mul && !adds && !subtracts) return std::nullopt;
  const std::optional<AffineValue> a = value(node.operands[0], depth + 1);
  if (!a) return std::nullopt;
  if (node.op == &ops::neg) return scaled_sum({}, *a, -1);
  const std::optional<AffineValue> b = value(node.operands[1], depth + 1);
  if (!b) return std::nullopt;
  return adds || subtracts ? scaled_sum(*a, *b, adds ? 1 : -1) : multiplied(*a, *b);
}

std::optional<AffineValue> AffineReader::positive_if(ir::ValueId condition) {
  bool is_negated = false;
  for (int depth = 0; depth < most_depth; ++depth) {
    const ir::Node& node = graph_[condition];
    if (node.op == &ops::lt || node.op == &ops::le) {
      const std::optional<AffineValue> low = value(node.operands[0]), high = value(node.operands[1]);
      if (!low || !high) return std::nullopt;
      AffineValue above = scaled_sum(*high, *low, -1);
      if (node.op == &ops::le) above = scaled_sum(above, {.offset = 1}, 1);
      return is_negated ? scaled_sum({.offset = 1}, above, -1) : above;
    }
    if (node.op == &ops::logical_and && is_true(graph_, node.operands[0])) {
      condition = node.operands[1];
    } else if (node.op == &ops::logical_and && is_true(graph_, node.operands[1])) {
      condition = node.operands[0];
    } else if (node.op == &ops::logical_not || shows_its_operand(node)) {
      is_negated = is_negated != (node.op == &ops::logical_not);
      condition = node.operands[0];
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace lathe::importing
