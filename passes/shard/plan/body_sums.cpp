#include "passes/shard/plan/body_sums.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/error.h"
#include "ir/tensor/constants.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// The factors that a value is a sum over, with the nodes that fold them: if one is split, the value is a share.
using Sums = std::map<Factor, ValueId>;

bool same_factors(const Sums& a, const Sums& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.first == y.first; });
}

/// Whether a cast loses nothing that a sum of shares would keep.
bool widens(DType from, DType to) {
  return is_float(from) && is_float(to) && size_in_bytes(to) >= size_in_bytes(from) && !(from == f16 && to == bf16) &&
         !(from == bf16 && to == f16);
}

class BodySums {
 public:
  /// `node` is the loop of the body in the graph `around` it, and `loop` the one of the whole graph that has it.
  BodySums(const Graph& around, const Node& node, GraphDims& dims, Factors& factors,
           std::vector<BlockedInBody>& blocked, ValueId loop)
      : body_(loop_body(node).graph()), dims_(dims), factors_(factors), blocked_(blocked), loop_(loop), sums_(body_) {
    find_accumulators(around, node);
  }

  /// Returns the sums of the results, in order.
  std::vector<Sums> run() {
    for (const ValueId id : all_values(body_)) {
      const Node& node = body_[id];
      sums_[id] = is_loop(node) ? of_loop(id) : passed_on(id);
      for (auto& [factor, origin] : folded(id)) sums_[id].insert({factor, origin});
    }
    std::vector<Sums> results;
    for (const int carry : std::views::iota(0, carries_)) {
      const ValueId next = next_of(body_, carry);
      if (!accumulators_.contains(next)) block(sums_[next]);
      results.push_back(accumulators_.contains(next) ? sums_[next] : Sums());
    }
    for (const Output& output : body_.outputs) results.push_back(sums_[output.value]);
    return results;
  }

 private:
  /// Finds the carries that start at zero, to which each iteration adds a value, and that nothing else reads.
  void find_accumulators(const Graph& around, const Node& loop) {
    carries_ = carry_count(loop);
    const std::vector<ValueId> arguments = body_.arguments();
    std::map<ValueId, int> readers;
    for (const Node& node : body_.nodes)
      for (const ValueId operand : node.operands) ++readers[operand];
    for (const Output& output : body_.outputs) ++readers[output.value];
    for (int carry = 0; carry < carries_; ++carry) {
      const ValueId state = arguments[static_cast<std::size_t>(carry)], next = next_of(body_, carry);
      const Node& sum = body_[next];
      const std::optional<Number> first = uniform_value(around, loop.operands[static_cast<std::size_t>(carry)]);
      const bool adds = sum.op == &ops::add && (sum.operands[0] == state || sum.operands[1] == state);
      if (adds && readers[state] == 1 && first && first->real() == 0) accumulators_.insert(next);
    }
  }

  void block(const Sums& sums) {
    for (const auto& [factor, origin] : sums) {
      const Node& node = body_[origin];
      const std::string why =
          fmt::format("in its body, {} at {}: the shares of processes would have to be added up in each iteration",
                      node.op->name.value, node.loc.to_string());
      blocked_.push_back({loop_, {factor}, why});
      factors_.block({factor}, {loop_, why});
    }
  }

  /// Returns the factors of dims that the node adds up, as PartialPlanner does for the whole graph.
  Sums folded(ValueId id) const {
    const Node& node = body_[id];
    Sums sums;
    const auto fold = [&](int operand, int dim) {
      for (const Factor factor : factors_.resolve(dims_.dim(node.operands[static_cast<std::size_t>(operand)], dim)))
        sums.insert({factor, id});
    };
    if (const auto* meaning = node.op->as<Reduce>(); meaning && meaning->combine == ScalarOp::add)
      for (const int d : rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"),
                                               body_[node.operands[0]].type.rank()))
        fold(0, d);
    if (const auto* meaning = node.op->as<Contraction>()) {
      const ContractionRoles roles = meaning->roles(node);
      for (const char label : roles.contracted()) fold(0, static_cast<int>(roles.lhs.find(label)));
    }
    const auto* custom = node.op->as<Custom>();
    if (custom && custom->kind == CustomKind::gather)
      fold(0, rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), body_[node.operands[0]].type.rank()));
    if (custom && custom->kind == CustomKind::scatter_add)
      for (int d = 0; d < body_[node.operands[0]].type.rank(); ++d) fold(0, d);
    return sums;
  }

  /// Returns the sums of the operands if the op commutes with addition, and blocks them if not.
  Sums passed_on(ValueId id) {
    const Node& node = body_[id];
    std::vector<const Sums*> given;
    for (const ValueId operand : node.operands)
      if (!sums_[operand].empty()) given.push_back(&sums_[operand]);
    if (given.empty()) return {};
    if (commutes(node, given) || accumulators_.contains(id)) return *given.front();
    for (const Sums* each : given) block(*each);
    return {};
  }

  bool commutes(const Node& node, const std::vector<const Sums*>& given) const {
    const bool one = given.size() == 1, first = one && !sums_[node.operands[0]].empty();
    if (node.op->as<View>() || node.op == &ops::contiguous || node.op == &ops::neg) return true;
    if (node.op == &ops::add || node.op == &ops::sub) return given.size() == 2 && same_factors(*given[0], *given[1]);
    if (node.op == &ops::cast) return widens(body_[node.operands[0]].type.dtype, node.type.dtype);
    if (node.op == &ops::div) return first && is_float(node.type.dtype);
    if (const auto* meaning = node.op->as<Reduce>()) return meaning->combine == ScalarOp::add;
    return one && (node.op == &ops::mul || node.op->as<Contraction>());
  }

  /// Returns the sums of a result of a loop in the body. It reads whole values.
  Sums of_loop(ValueId id) {
    for (const ValueId operand : body_[id].operands) block(sums_[operand]);
    if (!dims_.sums.contains(id)) set_sums(id);
    Sums sums;
    for (const Factor factor : dims_.sums.at(id)) sums.insert({factor, id});
    return sums;
  }

  void set_sums(ValueId id) {
    const std::vector<Sums> results =
        BodySums(body_, body_[id], *dims_.bodies.at(id), factors_, blocked_, loop_).run();
    for (const auto& [other, dims] : dims_.bodies)
      if (dims == dims_.bodies.at(id)) set_sums_of(dims_, body_[other], other, results);
  }

 public:
  static void set_sums_of(GraphDims& dims, const Node& node, ValueId id, const std::vector<Sums>& results) {
    FactorList& list = dims.sums[id];
    for (const auto& [factor, origin] : results[static_cast<std::size_t>(loop_result(node))]) list.push_back(factor);
  }

 private:
  const Graph& body_;
  GraphDims& dims_;
  Factors& factors_;
  std::vector<BlockedInBody>& blocked_;
  ValueId loop_;
  int carries_ = 0;
  std::set<ValueId> accumulators_ = {};  ///< the next values of carries that add up shares
  NodeMap<Sums> sums_;
};

}  // namespace

void plan_body_sums(const Graph& graph, FactoredGraph& factored, std::vector<BlockedInBody>& blocked) {
  std::map<const GraphDims*, std::vector<Sums>> results;  // by body, which the results of a loop share
  for (const auto& [id, dims] : factored.bodies) {
    if (!results.contains(dims.get()))
      results[dims.get()] = BodySums(graph, graph[id], *dims, factored.factors, blocked, id).run();
    BodySums::set_sums_of(factored, graph[id], id, results[dims.get()]);
  }
}

}  // namespace lathe::shard
