#include "passes/autodiff/loop_gradient.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "ir/ops/functional/functional.h"
#include "ir/ops/loop_parts.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/loop_body_gradient.h"
#include "passes/autodiff/sum_over_iterations.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// An argument of the gradient's body, with its operand.
struct BodyArgument {
  ValueId value;  ///< in the graph of the body and its gradient
  Value operand;  ///< of the loop
};

class LoopDifferentiation {
 public:
  LoopDifferentiation(GraphBuilder& builder, const DifferentiatedLoop& loop)
      : builder_(builder),
        loop_(loop),
        parts_(loop_parts(loop.node, loop.operands)),
        carries_(static_cast<int>(parts_.carries.size())),
        sequences_(static_cast<int>(parts_.sequences.size())),
        arguments_(parts_.body.graph().arguments()),
        joint_(differentiate_body(parts_.body.graph(), arrived(0, carries_),
                                  arrived(carries_, static_cast<int>(loop.cotangents.size())))) {}

  std::vector<std::optional<Value>> run() {
    plan_sums();
    SavedForGradient saved(joint_);
    choose(saved);
    save(saved);
    run_backward(saved);
    std::vector<std::optional<Value>> gradients(arguments_.size());
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (is_wanted(static_cast<int>(i))) gradients[i] = gradient_of(static_cast<int>(i));
    return gradients;
  }

 private:
  bool is_carry(int argument) const { return argument < carries_; }
  bool is_sequence(int argument) const { return argument >= carries_ && argument < carries_ + sequences_; }
  bool is_invariant(int argument) const { return argument >= carries_ + sequences_; }
  const Graph& joint() const { return joint_.builder->graph(); }
  const Graph& body() const { return parts_.body.graph(); }
  std::size_t at(int i) const { return static_cast<std::size_t>(i); }

  /// Whether a gradient with respect to the argument exists and is asked for.
  bool is_wanted(int argument) const {
    return loop_.needed[argument] &&
           (joint_.arguments[at(argument)] || (is_carry(argument) && joint_.next[at(argument)]));
  }

  /// Returns whether gradients arrive at the results first .. last - 1.
  std::vector<bool> arrived(int first, int last) const {
    std::vector<bool> found;
    for (int r = first; r < last; ++r) found.push_back(loop_.cotangents[at(r)].has_value());
    return found;
  }
  /// Returns the position among the body's arguments, or -1.
  int argument_at(ValueId id) const {
    const auto found = std::ranges::find(arguments_, id);
    return found == arguments_.end() ? -1 : static_cast<int>(found - arguments_.begin());
  }

  /// Marks the values of the body that are computed from invariants alone.
  NodeMap<bool> find_fixed() const {
    NodeMap<bool> fixed(body(), false);
    for (const ValueId id : all_values(body())) {
      const Node& node = body()[id];
      fixed[id] = node.op->as<Argument>()
                      ? is_invariant(argument_at(id))
                      : !node.operands.empty() &&
                            std::ranges::all_of(node.operands, [&](ValueId operand) { return fixed[operand]; });
    }
    return fixed;
  }

  void plan_sums() {
    const NodeMap<bool> fixed = find_fixed();
    for (int i = carries_ + sequences_; i < static_cast<int>(arguments_.size()); ++i)
      if (is_wanted(i))
        sums_.emplace(i, plan_iteration_sum(*joint_.builder, joint_.arguments[at(i)]->id(),
                                            [&](ValueId id) { return joint_.is_forward(id) && fixed[id]; }));
  }

  /// Marks all that the gradient reads.
  void choose(SavedForGradient& saved) {
    for (int i = 0; i < carries_; ++i)
      if (joint_.next[at(i)] && joint_.arguments[at(i)]) saved.need(joint_.arguments[at(i)]->id());
    for (int i = carries_; i < carries_ + sequences_; ++i)
      if (is_wanted(i)) {
        const ValueId id = joint_.arguments[at(i)]->id();
        saved.need(id);
        if (!saved.is_saved(id) && !is_given(id)) stack(id);
      }
    for (const auto& [argument, sum] : sums_) {
      for_carried(sum, [&](ValueId id) {
        saved.need(id);
        if (std::ranges::find(added_, id) == added_.end()) added_.push_back(id);
      });
      for_stacked(sum, joint(), [&](ValueId id) {
        saved.need(id);
        if (!saved.is_saved(id) && !is_given(id)) stack(id);
      });
    }
  }

  void stack(ValueId id) {
    if (std::ranges::find(stacked_, id) == stacked_.end()) stacked_.push_back(id);
  }

  /// Whether a value of all iterations exists outside of the loops: a sequence, or the gradient of an output.
  bool is_given(ValueId id) const {
    const int argument = argument_at(id);
    return (argument >= 0 && is_sequence(argument)) || output_of(id) >= 0;
  }
  int output_of(ValueId id) const {
    for (std::size_t i = 0; i < joint_.outputs.size(); ++i)
      if (joint_.outputs[i] && joint_.outputs[i]->id() == id) return static_cast<int>(i);
    return -1;
  }

  /// Adds a forward loop that also has the saved values as outputs. Uses outputs that the body has.
  void save(const SavedForGradient& saved) {
    GraphBuilder forward{Graph(body())};
    std::vector<std::pair<ValueId, int>> result_of;
    int outputs = static_cast<int>(body().outputs.size());
    for (const ValueId id : saved.saved()) {
      const auto known = std::ranges::find(body().outputs, id, &Output::value);
      if (known != body().outputs.end()) {
        result_of.emplace_back(id, carries_ + static_cast<int>(known - body().outputs.begin()));
        continue;
      }
      forward.output(free_output(forward.graph()), Value(forward, id));
      result_of.emplace_back(id, carries_ + outputs++);
    }
    if (result_of.empty()) return;
    LoopParts parts = parts_;
    if (outputs > static_cast<int>(body().outputs.size())) parts.body = Body(forward.finish());
    const GraphBuilder::At line(builder_, loop_.node.loc);
    const std::vector<Value> results = loop(builder_, parts);
    for (const auto& [id, result] : result_of) outside_.emplace(id, results[at(result)]);
  }

  static std::string free_output(const Graph& graph) {
    for (int number = 0;; ++number) {
      std::string name = fmt::format("saved{}", number);
      if (std::ranges::find(graph.outputs, name, &Output::name) == graph.outputs.end()) return name;
    }
  }

  /// Adds the loop in the other direction.
  void run_backward(const SavedForGradient& saved) {
    GraphBuilder gradient(body().name + ".gradient");
    Rebuilder to(gradient, joint());
    LoopParts parts{.body = parts_.body, .trips = parts_.trips, .reverse = !parts_.reverse};
    std::vector<std::pair<Value, ValueId>> updates;  // of the carries of the gradient, to values of the joint graph
    add_carries(to, parts, updates);
    add_inputs(to, parts, saved);
    for (const ValueId id : all_values(joint()))
      if (saved.is_computed(id) && !to.has(id) && !joint()[id].op->as<Argument>()) to.set(id, to.copy(joint()[id]));
    for (const ValueId id : stacked_) gradient.output(fmt::format("out{}", gradient.graph().outputs.size()), to[id]);
    std::size_t sum = 0;
    for (const auto& [state, id] : updates) {
      const GraphBuilder::At line(gradient, state.node().loc);
      const TensorType type = state.type();
      if (sum++ < sums_from_)
        gradient.update(state, id.valid() ? to[id] : full(gradient, type.shape, 0, type.dtype));
      else
        gradient.update(state, add(state, to[id]));
    }
    gradient.add_checks(joint().checks);
    if (gradient.graph().updates.empty() && gradient.graph().outputs.empty()) return;
    parts.body = Body(gradient.finish());
    const std::vector<Value> results = loop(builder_, parts);
    collect(results);
  }

  void add_carries(Rebuilder& to, LoopParts& parts, std::vector<std::pair<Value, ValueId>>& updates) {
    const auto add_state = [&](const Node& like, const std::string& name, const Value& first) {
      const GraphBuilder::At line(to.builder(), like.loc.as_gradient());
      parts.carries.push_back(first);
      return to.builder().argument(ops::state, to.builder().free_name(name), like.type.dtype, like.type.shape);
    };
    for (int i = 0; i < carries_; ++i) {
      if (!joint_.next[at(i)]) continue;
      const Node& carry = body()[arguments_[at(i)]];
      const Value state = add_state(carry, "grad." + carry.name, cotangent_or_zeros(i, carry.type));
      to.set(joint_.next[at(i)]->id(), state);
      updates.emplace_back(state, joint_.arguments[at(i)] ? joint_.arguments[at(i)]->id() : ValueId());
      carried_.push_back(i);
    }
    sums_from_ = updates.size();
    for (const ValueId id : added_) {
      const Node& value = joint()[id];
      const Value zeros = full(builder_, value.type.shape, 0, value.type.dtype);
      updates.emplace_back(add_state(value, "sum", zeros), id);
    }
  }

  Value cotangent_or_zeros(int result, const TensorType& type) {
    const std::optional<Value>& given = loop_.cotangents[at(result)];
    return given ? *given : full(builder_, type.shape, 0, type.dtype);
  }

  /// Adds the sequences and then the invariants that the gradient's body reads.
  void add_inputs(Rebuilder& to, LoopParts& parts, const SavedForGradient& saved) {
    const NodeMap<bool> read = values_read(saved);
    const auto add_input = [&](ValueId id, std::vector<Value>& operands, const Value& operand) {
      const Node& node = joint()[id];
      const GraphBuilder::At line(to.builder(), node.loc);
      const std::string name = node.name.empty() ? fmt::format("saved.{}", node.op->name.value) : node.name;
      operands.push_back(operand);
      to.set(id, to.builder().argument(ops::input, to.builder().free_name(name), node.type.dtype, node.type.shape));
    };
    for (const ValueId id : all_values(joint())) {
      if (!read[id] || to.has(id)) continue;
      if (saved.is_saved(id) || is_given(id)) add_input(id, parts.sequences, stacked_outside(id));
    }
    for (const ValueId id : all_values(joint()))
      if (read[id] && !to.has(id) && joint()[id].op->as<Argument>())
        add_input(id, parts.invariants, parts_.invariants[at(argument_at(id) - carries_ - sequences_)]);
  }

  /// Returns the values that nodes of the gradient's body, its updates or its outputs read.
  NodeMap<bool> values_read(const SavedForGradient& saved) const {
    NodeMap<bool> read(joint(), false);
    for (const ValueId id : all_values(joint()))
      if (saved.is_computed(id))
        for (const ValueId operand : joint()[id].operands) read[operand] = true;
    for (const ValueId id : stacked_) read[id] = true;
    for (const ValueId id : added_) read[id] = true;
    for (int i = 0; i < carries_; ++i)
      if (joint_.next[at(i)] && joint_.arguments[at(i)]) read[joint_.arguments[at(i)]->id()] = true;
    return read;
  }

  /// Returns a value of all iterations that exists before the backward loop.
  Value stacked_outside(ValueId id) const {
    if (const auto known = outside_.find(id); known != outside_.end()) return known->second;
    if (const int output = output_of(id); output >= 0) return *loop_.cotangents[at(carries_ + output)];
    return parts_.sequences[at(argument_at(id) - carries_)];
  }

  void collect(const std::vector<Value>& results) {
    std::size_t next = 0;
    for (const int carry : carried_) carry_gradient_.emplace(carry, results[next++]);
    for (const ValueId id : added_) added_up_.emplace(id, results[next++]);
    for (const ValueId id : stacked_) outside_.emplace(id, results[next++]);
  }

  Value gradient_of(int argument) {
    if (is_carry(argument)) return carry_gradient_.at(argument);
    if (is_sequence(argument)) return stacked_outside(joint_.arguments[at(argument)]->id());
    const IterationValues values{.builder = builder_,
                                 .graph = joint(),
                                 .stacked = [&](ValueId id) { return stacked_outside(id); },
                                 .carried = [&](ValueId id) { return added_up_.at(id); },
                                 .invariant = [&](ValueId id) { return fixed_outside(id); }};
    return iteration_sum(sums_.at(argument), values);
  }

  /// Computes a value of invariants outside of the loop.
  Value fixed_outside(ValueId id) {
    const Node& node = joint()[id];
    if (node.op->as<Argument>()) return parts_.invariants[at(argument_at(id) - carries_ - sequences_)];
    if (const auto known = fixed_.find(id); known != fixed_.end()) return known->second;
    std::vector<Value> operands;
    for (const ValueId operand : node.operands) operands.push_back(fixed_outside(operand));
    return fixed_.emplace(id, builder_.copy(node, operands)).first->second;
  }

  GraphBuilder& builder_;
  const DifferentiatedLoop& loop_;
  LoopParts parts_;
  int carries_, sequences_;
  std::vector<ValueId> arguments_;  // of the body
  BodyGradient joint_;
  std::map<int, IterationSum> sums_;  // by invariant argument
  std::vector<ValueId> stacked_;      // outputs of the gradient's body
  std::vector<ValueId> added_;        // values that it adds up
  std::vector<int> carried_;          // carries whose gradients it carries
  std::size_t sums_from_ = 0;         // the first of its carries that is a sum
  std::map<ValueId, Value> outside_;  // values of all iterations, stacked
  std::map<ValueId, Value> fixed_;    // values of invariants, in the graph around the loop
  std::map<ValueId, Value> added_up_;
  std::map<int, Value> carry_gradient_;
};

}  // namespace

std::vector<std::optional<Value>> loop_gradient(GraphBuilder& builder, const DifferentiatedLoop& loop) {
  return LoopDifferentiation(builder, loop).run();
}

}  // namespace lathe::ir
