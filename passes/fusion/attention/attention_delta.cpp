#include "passes/fusion/attention/attention_delta.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/order/dependence.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::size_t most_factors = 32;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// How often each value is a factor of a point-wise product; negative if it divides.
using Factors = std::map<ValueId, int>;

/// Returns nothing if there are too many.
std::optional<Factors> factors_of(const Graph& graph, ValueId value, bool through_casts) {
  Factors found;
  std::vector<std::pair<ValueId, int>> work = {{value, 1}};  // each is at least one factor
  for (std::size_t seen = 0; !work.empty();) {
    if (seen + work.size() > most_factors) return std::nullopt;
    const auto [id, times] = work.back();
    work.pop_back();
    const Node& node = graph[id];
    if (node.op == &ops::mul || node.op == &ops::div) {
      work.emplace_back(node.operands[0], times);
      work.emplace_back(node.operands[1], node.op == &ops::mul ? times : -times);
      continue;
    }
    if (through_casts && node.op == &ops::cast && is_float(graph[node.operands[0]].type.dtype)) {
      work.emplace_back(node.operands[0], times);
      continue;
    }
    ++seen;
    int& exponent = found[id];
    exponent += times;
    if (exponent == 0) found.erase(id);
  }
  return found;
}

/// A contraction, seen from one of its operands.
struct Product {
  Product(const Graph& graph, ValueId product, std::size_t k)
      : id(product), own(graph[product].operands[k]), other(graph[product].operands[1 - k]) {
    const ContractionRoles roles = graph[product].op->as<Contraction>()->roles(graph[product]);
    out = roles.out;
    own_labels = k == 0 ? roles.lhs : roles.rhs;
    other_labels = k == 0 ? roles.rhs : roles.lhs;
  }
  ValueId id, own, other;
  std::string own_labels, other_labels, out;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// The dot product that a sum over columns is equal to: both values, in an order of dims that ends with the summed
/// ones.
struct Dot {
  ValueId result, gradient;
  std::vector<int> result_order, gradient_order;
  int summed = 0;
};

class ResultDotFinder {
 public:
  ResultDotFinder(const Graph& graph, const std::function<bool(ValueId)>& wanted, const AttentionDelta& which)
      : graph_(graph),
        users_(graph),
        dependence_(graph),
        wanted_(wanted),
        which_(which),
        most_values_(which.block_bytes == 0 ? -1 : 2 * which.block_bytes / (4 * size_in_bytes(f32))) {}

  std::optional<Dot> find(ValueId sum) const {
    const Node& node = graph_[sum];
    if (!reduces_by(node, ScalarOp::add) || (node.type.dtype != f32 && node.type.dtype != f64)) return std::nullopt;
    const std::vector<int> dims = reduced_dims(graph_, node);
    const auto factors = dims.size() == 1 ? factors_of(graph_, node.operands[0], which_.converted) : std::nullopt;
    if (!factors) return std::nullopt;
    for (const auto& [factor, times] : *factors) {
      const Node& product = graph_[factor];
      if (times != 1 || !product.op->as<Contraction>() || product.type.shape != graph_[node.operands[0]].type.shape)
        continue;
      Factors weights = *factors;
      weights.erase(factor);
      for (const std::size_t k : {0U, 1U})
        if (const auto dot = with_values(sum, Product(graph_, factor, k), dims[0], weights)) return dot;
    }
    return std::nullopt;
  }

 private:
  /// `gradient`: the matmul that computes the gradient of the weights; its own operand is the values.
  std::optional<Dot> with_values(ValueId sum, const Product& gradient, int column, const Factors& weights) const {
    const char columns = gradient.out[column];
    if (!has(gradient.own_labels, columns) || has(gradient.other_labels, columns)) return std::nullopt;
    for (const ValueId user : users_[gradient.own]) {
      if (!graph_[user].op->as<Contraction>() || user >= sum) continue;
      if (which_.narrow_only && !is_narrower(user, sum)) continue;
      for (const std::size_t k : {0U, 1U}) {
        const Product result(graph_, user, k);
        if (result.own != gradient.own || graph_[result.other].type.shape != graph_[gradient.id].type.shape) continue;
        const auto dot = dot_of(gradient, result, columns);
        if (dot && factors_of(graph_, result.other, which_.converted) == weights && are_many(result) &&
            (which_.independent || dependence_.needs(gradient.other, user)) && wanted_(user))
          return dot;
      }
    }
    return std::nullopt;
  }

  bool is_narrower(ValueId a, ValueId b) const {
    return size_in_bytes(graph_[a].type.dtype) < size_in_bytes(graph_[b].type.dtype);
  }

  /// Returns the dot product if both matmuls use the values' dims in the same roles, except that one sums over the
  /// columns and the other sums over the dims that the first one adds.
  std::optional<Dot> dot_of(const Product& gradient, const Product& result, char columns) const {
    std::map<char, char> labels;  // from the gradient's matmul to the result's
    for (std::size_t i = 0; i < gradient.out.size(); ++i) labels[gradient.out[i]] = result.other_labels[i];
    if (labels.size() != gradient.out.size() || has(result.out, labels[columns])) return std::nullopt;
    std::string depth;
    for (std::size_t i = 0; i < gradient.own_labels.size(); ++i) {
      const char from = gradient.own_labels[i], to = result.own_labels[i];
      if (!has(gradient.out, from)) {
        if (!has(gradient.other_labels, from) || has(result.other_labels, to) || !has(result.out, to))
          return std::nullopt;
        depth += from;
        labels[from] = to;
      } else if (labels[from] != to || (from != columns && !has(gradient.other_labels, from))) {
        return std::nullopt;
      }
    }
    std::string order = gradient.out;
    order.erase(std::remove(order.begin(), order.end(), columns), order.end());
    order += depth;
    if (result.out.size() != order.size() || gradient.other_labels.size() != order.size()) return std::nullopt;
    Dot dot{.result = result.id, .gradient = gradient.other, .result_order = {}, .gradient_order = {}};
    dot.summed = static_cast<int>(depth.size());
    for (const char label : order) {
      const auto r = result.out.find(labels[label]), g = gradient.other_labels.find(label);
      if (r == std::string::npos || g == std::string::npos) return std::nullopt;
      dot.result_order.push_back(static_cast<int>(r));
      dot.gradient_order.push_back(static_cast<int>(g));
    }
    return dot;
  }

  /// Whether the values of one batch, over columns and depth, are many, or may be.
  bool are_many(const Product& result) const {
    Dim count(1);
    for (std::size_t i = 0; i < result.own_labels.size(); ++i)
      if (!has(result.other_labels, result.own_labels[i]) || !has(result.out, result.own_labels[i]))
        count = count * graph_[result.own].type.shape[static_cast<int>(i)].unnamed();
    const auto known = count.value();
    return !known || *known > most_values_;
  }

  const Graph& graph_;
  Users users_;
  Dependence dependence_;
  const std::function<bool(ValueId)>& wanted_;
  AttentionDelta which_;
  std::int64_t most_values_;  ///< per batch
};

}  // namespace

Graph sums_from_results(const Graph& graph, const std::function<bool(ValueId product)>& wanted,
                        const AttentionDelta& which) {
  const ResultDotFinder finder(graph, wanted, which);
  std::map<ValueId, Dot> dots;
  for (const ValueId id : all_values(graph))
    if (const auto dot = finder.find(id)) dots[id] = *dot;
  if (dots.empty()) return graph;
  GraphBuilder builder(graph.name);
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph)) {
    const auto at = dots.find(id);
    if (at == dots.end()) {
      to.set(id, to.copy(graph[id]));
      continue;
    }
    const GraphBuilder::At here(builder, graph[id].loc);
    const Dot& dot = at->second;
    const DType dtype = graph[id].type.dtype;
    const Value result = cast(canonical::permuted(to[dot.result], dot.result_order), dtype),
                gradient = cast(canonical::permuted(to[dot.gradient], dot.gradient_order), dtype),
                product = mul(result, gradient);
    std::vector<std::int64_t> dims;
    for (int i = 0; i < dot.summed; ++i) dims.push_back(product.shape().rank() - dot.summed + i);
    const Value dotted = sum(product, dims);
    const Value finite = where(lt(abs(dotted), infinity), dotted, std::numeric_limits<double>::quiet_NaN());
    to.set(id, view(finite, graph[id].type.shape));
  }
  to.close();
  return dce(builder.finish());
}

}  // namespace lathe
