#include "passes/transforms/loops/reduce_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/constants.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

class BodyReduction {
 public:
  BodyReduction(GraphBuilder& builder, LoopParts parts, const std::vector<bool>& used)
      : builder_(builder),
        parts_(std::move(parts)),
        body_(parts_.body.graph()),
        arguments_(body_.arguments()),
        carries_(parts_.carries.size()),
        sequences_(parts_.sequences.size()),
        used_(used),
        live_(body_, false),
        fixed_(body_, false),
        inner_(body_.name),
        to_(inner_, body_) {}

  ReducedLoop run() {
    find_live();
    find_fixed();
    reduced_.parts.trips = parts_.trips;
    reduced_.parts.reverse = parts_.reverse;
    add_arguments();
    copy_rest();
    add_results();
    inner_.add_checks(body_.checks);
    reduced_.parts.body = Body(inner_.finish());
    return std::move(reduced_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Value& operand(std::size_t argument) const {
    if (argument < carries_) return parts_.carries[argument];
    if (argument < carries_ + sequences_) return parts_.sequences[argument - carries_];
    return parts_.invariants[argument - carries_ - sequences_];
  }
  ValueId next(std::size_t carry) const { return next_of(body_, static_cast<int>(carry)); }
  bool is_unchanged(std::size_t carry) const { return next(carry) == arguments_[carry]; }

  /// Marks the nodes that used results need, through later iterations too.
  void find_live() {
    for (std::size_t r = 0; r < used_.size(); ++r)
      if (used_[r]) live_[r < carries_ ? next(r) : body_.outputs[r - carries_].value] = true;
    for (std::size_t r = 0; r < carries_; ++r)
      if (used_[r]) live_[arguments_[r]] = true;
    for (bool more = true; more;) {
      mark_ancestors(body_, live_);
      more = false;
      for (std::size_t c = 0; c < carries_; ++c)
        if (live_[arguments_[c]] && !live_[next(c)]) live_[next(c)] = more = true;
    }
  }

  /// Marks the nodes that have the same value in all iterations and depend on operands.
  void find_fixed() {
    NodeMap<bool> constant(body_, false);  // whether it depends on no argument
    for (const ValueId id : all_values(body_))
      constant[id] = !body_[id].op->as<Argument>() &&
                     std::ranges::all_of(body_[id].operands, [&](ValueId operand) { return constant[operand]; });
    for (std::size_t a = 0; a < arguments_.size(); ++a)
      fixed_[arguments_[a]] = a < carries_ ? is_unchanged(a) : a >= carries_ + sequences_;
    for (const ValueId id : all_values(body_)) {
      const Node& node = body_[id];
      if (!node.op->as<Argument>() && !node.operands.empty())
        fixed_[id] = !constant[id] && std::ranges::all_of(node.operands, [&](ValueId operand) {
          return fixed_[operand] || constant[operand];
        });
    }
  }

  /// Returns whether the value becomes an operand: views of one are cheaper in the body than a copy.
  bool is_operand(ValueId id) const {
    return fixed_[id] && (body_[id].op->as<Argument>() || !body_[id].op->as<View>());
  }

  /// Returns the fixed values that other nodes of the body, or its results, read.
  std::vector<ValueId> fixed_operands() const {
    NodeMap<bool> read(body_, false);
    for (const ValueId id : all_values(body_))
      if (live_[id] && !is_operand(id))
        for (const ValueId value : body_[id].operands) read[value] = true;
    for (std::size_t r = 0; r < body_.outputs.size(); ++r)
      if (used_[carries_ + r]) read[body_.outputs[r].value] = true;
    for (std::size_t c = 0; c < carries_; ++c)
      if (live_[arguments_[c]] && !is_unchanged(c)) read[next(c)] = true;
    std::vector<ValueId> found;
    for (const ValueId id : all_values(body_))
      if (read[id] && is_operand(id)) found.push_back(id);
    return found;
  }

  /// Returns a fixed value in the graph around the loop.
  Value outside(ValueId id) {
    const auto known = outside_.find(id);
    if (known != outside_.end()) return known->second;
    const Node& node = body_[id];
    const auto argument = std::ranges::find(arguments_, id);
    if (argument != arguments_.end()) return operand(static_cast<std::size_t>(argument - arguments_.begin()));
    std::vector<Value> operands;
    for (const ValueId each : node.operands) operands.push_back(outside(each));
    return outside_.emplace(id, builder_.copy(node, operands)).first->second;
  }

  void add_argument(ValueId id, const Op& op, std::vector<Value>& operands, const Value& operand) {
    const Node& node = body_[id];
    const GraphBuilder::At line(inner_, node.loc);
    const std::string name = node.name.empty() ? std::string(node.op->name.value) : node.name;
    operands.push_back(operand);
    to_.set(id, inner_.argument(op, inner_.free_name(name), node.type.dtype, node.type.shape));
  }

  /// Returns the argument that `operands` has for this operand, which has become `made`.
  std::optional<Value> known_argument(const std::vector<std::pair<Value, Value>>& made, const Value& operand) const {
    for (const auto& [outer, inner] : made)
      if (outer.id() == operand.id()) return inner;
    return std::nullopt;
  }

  void add_arguments() {
    for (std::size_t c = 0; c < carries_; ++c)
      if (live_[arguments_[c]] && !is_unchanged(c)) {
        kept_carries_.push_back(c);
        add_argument(arguments_[c], ops::state, reduced_.parts.carries, parts_.carries[c]);
      }
    std::vector<std::pair<Value, Value>> made;
    for (std::size_t s = carries_; s < carries_ + sequences_; ++s)
      if (live_[arguments_[s]]) add_shared(arguments_[s], reduced_.parts.sequences, operand(s), made);
    made.clear();
    for (const ValueId id : fixed_operands()) {
      const Value value = outside(id);
      if (const auto number = uniform_value(builder_.graph(), value.id()))
        to_.set(id, number_of(value, *number));
      else
        add_shared(id, reduced_.parts.invariants, value, made);
    }
  }

  /// Adds an input for an operand, or uses the one that it has.
  void add_shared(ValueId id, std::vector<Value>& operands, const Value& operand,
                  std::vector<std::pair<Value, Value>>& made) {
    if (const auto known = known_argument(made, operand)) return to_.set(id, *known);
    add_argument(id, ops::input, operands, operand);
    made.emplace_back(operand, to_[id]);
  }

  /// Copies the nodes between the arguments and the results.
  void copy_rest() {
    NodeMap<bool> read(body_, false);
    for (const std::size_t c : kept_carries_) read[next(c)] = true;
    for (std::size_t r = 0; r < body_.outputs.size(); ++r)
      if (used_[carries_ + r]) read[body_.outputs[r].value] = true;
    for (const ValueId id : reversed_values(body_))
      if (read[id] && !to_.has(id))
        for (const ValueId operand : body_[id].operands) read[operand] = true;
    for (const ValueId id : all_values(body_))
      if (read[id] && !to_.has(id)) to_.set(id, to_.copy(body_[id]));
  }

  Value number_of(const Value& outer, const Number& number) {
    const GraphBuilder::At line(inner_, outer.node().loc);
    return full(inner_, outer.shape(), number, outer.dtype());
  }

  void add_results() {
    reduced_.result.assign(used_.size(), -1);
    reduced_.fixed.assign(used_.size(), std::nullopt);
    for (std::size_t k = 0; k < kept_carries_.size(); ++k) {
      const std::size_t c = kept_carries_[k];
      inner_.update(to_[arguments_[c]], to_[next(c)]);
      reduced_.result[c] = static_cast<int>(k);
    }
    for (std::size_t c = 0; c < carries_; ++c)
      if (used_[c] && is_unchanged(c)) reduced_.fixed[c] = parts_.carries[c];
    int outputs = 0;
    for (std::size_t r = 0; r < body_.outputs.size(); ++r) {
      if (!used_[carries_ + r]) continue;
      inner_.output(body_.outputs[r].name, to_[body_.outputs[r].value]);
      reduced_.result[carries_ + r] = static_cast<int>(kept_carries_.size()) + outputs++;
    }
  }

  GraphBuilder& builder_;
  LoopParts parts_;
  const Graph& body_;
  std::vector<ValueId> arguments_;
  std::size_t carries_, sequences_;
  const std::vector<bool>& used_;
  NodeMap<bool> live_, fixed_;
  GraphBuilder inner_;
  Rebuilder to_;
  std::map<ValueId, Value> outside_;
  std::vector<std::size_t> kept_carries_;
  ReducedLoop reduced_{.parts = {.body = parts_.body}, .result = {}, .fixed = {}};
};

}  // namespace

ReducedLoop reduce_body(GraphBuilder& builder, LoopParts parts, const std::vector<bool>& used) {
  return BodyReduction(builder, std::move(parts), used).run();
}

}  // namespace lathe::ir
