#include "passes/autodiff/backward.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "ir/ops/functional/functional.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/loop_views.h"
#include "passes/autodiff/join_pads.h"
#include "passes/autodiff/loop_gradient.h"

namespace lathe::ir {

bool passes_gradient(const Node& node) {
  if (!is_float(node.type.dtype) && !is_complex(node.type.dtype)) return false;
  return !std::holds_alternative<NotDifferentiable>(node.op->gradient);
}

namespace {

bool contains(std::span<const ValueId> ids, ValueId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

/// One sweep. Ids only grow, and every operand's id is smaller than its user's, so visiting the values in descending
/// order visits each one after all its users.
class Sweep {
 public:
  Sweep(GraphBuilder& builder, std::span<const ValueId> targets, std::span<const ValueId> stop_at)
      : builder_(builder), targets_(targets), stop_at_(stop_at) {}

  std::vector<std::optional<Value>> run(std::span<const Cotangent> seeds) {
    std::vector<ValueId> starts;
    for (const Cotangent& seed : seeds) {
      starts.push_back(seed.value);
      arrive(seed.value, seed.gradient);
    }
    const auto region = ancestors(builder_.graph(), starts, [&](ValueId id) { return !contains(stop_at_, id); });
    find_loops(region);
    for (const ValueId id : region) active_[id] = is_active(id);
    for (auto it = region.rbegin(); it != region.rend(); ++it)
      if ((active_[*it] || is_loop(builder_.graph()[*it])) && !contains(stop_at_, *it)) visit(*it);
    std::vector<std::optional<Value>> results;
    for (const ValueId target : targets_) results.push_back(arrived(target));
    return results;
  }

 private:
  /// Whether a gradient at `id` is used: it is a target or the gradient can flow on to one.
  bool is_active(ValueId id) const {
    if (contains(targets_, id)) return true;
    const Node& node = builder_.graph()[id];
    if (contains(stop_at_, id) || !passes_gradient(node)) return false;
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return active(operand); });
  }

  bool active(ValueId id) const {
    const auto at = active_.find(id);
    return at != active_.end() && at->second;
  }

  /// Returns the sum of the gradients that have arrived.
  std::optional<Value> arrived(ValueId id) {
    const auto at = arrived_.find(id);
    if (at == arrived_.end()) return std::nullopt;
    Arrived& all = at->second;
    if (all.slices.size() > few_slices) {
      const GraphBuilder::At here(builder_, builder_.graph()[id].loc.as_gradient());
      all.add_to_sum(sum_of_known_pads(std::exchange(all.slices, {})));
    }
    return all.sum;
  }

  /// Adds `gradient`, summed to the shape of `id`, to the gradients that have arrived there.
  void arrive(ValueId id, Value gradient) {
    const TensorType type = builder_.graph()[id].type;
    if (gradient.shape() != type.shape) gradient = sum_to(gradient, type.shape);
    if (gradient.shape() != type.shape) gradient = reshape(gradient, type.shape);  // dims equal by a run-time check
    LATHE_ASSERT(gradient.dtype() == type.dtype);
    arrived_[id].add(gradient);
  }

  /// Collects the results of each loop. The first one is visited after all readers of the others.
  void find_loops(std::span<const ValueId> region) {
    const Graph& graph = builder_.graph();
    for (const ValueId id : region) {
      if (!is_loop(graph[id])) continue;
      const auto known = std::ranges::find_if(
          loops_, [&](const auto& loop) { return is_same_loop(graph[loop.front()], graph[id]); });
      if (known == loops_.end())
        loops_.push_back({id});
      else
        known->push_back(id);
    }
  }

  /// Propagates the gradients of all results of a loop to its operands.
  void visit_loop(const std::vector<ValueId>& results) {
    const Node node = builder_.graph()[results.front()];
    std::vector<std::optional<Value>> cotangents(static_cast<std::size_t>(result_count(node)));
    for (const ValueId id : results)
      if (passes_gradient(builder_.graph()[id]))
        cotangents[static_cast<std::size_t>(loop_result(builder_.graph()[id]))] = arrived(id);
    if (std::ranges::none_of(cotangents, [](const auto& c) { return c.has_value(); })) return;
    const auto needed = std::make_unique<bool[]>(node.operands.size());
    for (std::size_t i = 0; i < node.operands.size(); ++i) needed[i] = active(node.operands[i]);
    const std::span<const bool> wanted(needed.get(), node.operands.size());
    const GraphBuilder::At at(builder_, node.loc.as_gradient());
    const std::vector<Value> operands = values(node.operands);
    const auto grads =
        loop_gradient(builder_, {.node = node, .operands = operands, .cotangents = cotangents, .needed = wanted});
    for (std::size_t i = 0; i < grads.size(); ++i)
      if (grads[i]) arrive(node.operands[i], *grads[i]);
  }

  /// Propagates the gradient of a node to its operands.
  void visit(ValueId id) {
    if (is_loop(builder_.graph()[id])) {
      const auto first = std::ranges::find(loops_, id, [](const auto& loop) { return loop.front(); });
      if (first != loops_.end()) visit_loop(*first);
      return;
    }
    const auto grad = arrived(id);
    const Node node = builder_.graph()[id];  // a copy: the rules below add nodes
    if (!grad || node.operands.empty() || !passes_gradient(node)) return;
    const std::size_t n = node.operands.size();
    const auto needed = std::make_unique<bool[]>(n);
    for (std::size_t i = 0; i < n; ++i) needed[i] = active(node.operands[i]);
    if (std::none_of(needed.get(), needed.get() + n, [](bool b) { return b; })) return;

    const std::span<const bool> wanted(needed.get(), n);
    const auto grads = std::holds_alternative<GradientRule>(node.op->gradient) ? by_rule(id, node, *grad, wanted)
                                                                               : by_expansion(node, *grad, wanted);
    const GraphBuilder::At at(builder_, node.loc.as_gradient());
    for (std::size_t i = 0; i < n; ++i)
      if (needed[i] && grads[i]) arrive(node.operands[i], *grads[i]);
  }

  std::vector<Value> values(std::span<const ValueId> ids) const {
    std::vector<Value> result;
    for (const ValueId id : ids) result.emplace_back(builder_, id);
    return result;
  }

  std::vector<std::optional<Value>> by_rule(ValueId id, const Node& node, const Value& grad,
                                            std::span<const bool> needed) {
    const GraphBuilder::At at(builder_, node.loc.as_gradient());
    const auto operands = values(node.operands);
    const Value result(builder_, id);
    std::vector<std::optional<Value>> grads(operands.size());
    std::get<GradientRule>(node.op->gradient)({builder_, node, operands, result, grad, needed, grads});
    return grads;
  }

  /// Expands the composite and sweeps through the expansion, down to the composite's operands.
  std::vector<std::optional<Value>> by_expansion(const Node& node, const Value& grad, std::span<const bool> needed) {
    const auto operands = values(node.operands);
    const Composite* composite = node.op->as<Composite>();
    LATHE_ASSERT(composite);
    const Value meaning = [&] {
      const GraphBuilder::At at(builder_, node.loc);
      return composite->expand(builder_, node, operands);
    }();
    std::vector<ValueId> targets;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (needed[i] && !contains(targets, operands[i].id())) targets.push_back(operands[i].id());
    const Cotangent seed{meaning.id(), grad};
    const auto found = backward(builder_, {&seed, 1}, targets, node.operands);
    // An operand given twice gets its sum once.
    std::vector<std::optional<Value>> grads(operands.size());
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const auto first = std::find(node.operands.begin(), node.operands.end(), targets[t]);
      grads[first - node.operands.begin()] = found[t];
    }
    return grads;
  }

  static constexpr std::size_t few_slices = 8;

  /// Gradients that have arrived at a value, in the order of their arrival. A few gradients of slices are padded and
  /// added. arrived() combines larger numbers of them, because each addition takes the time of the whole value.
  struct Arrived {
    std::optional<Value> sum;
    std::vector<Value> slices, others;

    void add(const Value& gradient) {
      const bool is_slice = is_known_pad(gradient);
      (is_slice ? slices : others).push_back(gradient);
      if (is_slice && slices.size() == few_slices + 1) {
        sum.reset();
        for (const Value& other : others) add_to_sum(other);
      }
      if (!is_slice || slices.size() <= few_slices) add_to_sum(gradient);
    }
    void add_to_sum(const Value& value) { sum = sum ? ir::add(*sum, value) : value; }
  };

  GraphBuilder& builder_;
  std::span<const ValueId> targets_, stop_at_;
  std::map<ValueId, bool> active_;
  std::map<ValueId, Arrived> arrived_;
  std::vector<std::vector<ValueId>> loops_;  // the results of each loop, in order
};

}  // namespace

std::vector<std::optional<Value>> backward(GraphBuilder& builder, std::span<const Cotangent> seeds,
                                           std::span<const ValueId> targets, std::span<const ValueId> stop_at) {
  return Sweep(builder, targets, stop_at).run(seeds);
}

}  // namespace lathe::ir
