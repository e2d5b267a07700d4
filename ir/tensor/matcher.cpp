#include "ir/tensor/matcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/tensor/constants.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

/// A tree of conditions on a value. They are checked in the order: test, then operands, alternatives or inner, then
/// name.
struct Pattern::Impl {
  /// Returns the failed condition, or nothing. `uses` is the number of reads of the value.
  std::function<std::optional<std::string>(const Graph&, ValueId, int uses)> test = {};
  std::shared_ptr<const Impl> base = {};              ///< checked first, on the same value
  std::optional<std::vector<Pattern>> operands = {};  ///< patterns of the operands
  std::vector<Pattern> alternatives = {};             ///< alternatives for the same value
  std::optional<Pattern> inner = {};                  ///< pattern of the value, or of the operand below `skipped` ops
  std::vector<const Op*> skipped = {};
  std::string name = {};
};

namespace {

using Test = std::function<std::optional<std::string>(const Graph&, ValueId, int)>;

Pattern make(Pattern::Impl impl) { return Pattern(std::make_shared<const Pattern::Impl>(std::move(impl))); }
Pattern tested(Test test) { return make({.test = std::move(test)}); }

/// One match attempt, in continuation-passing style: a later failure backtracks to other operand orders and
/// alternatives.
class Search {
 public:
  using Next = std::function<bool()>;
  Search(const Matcher& matcher) : matcher_(matcher), graph_(matcher.graph()) {}

  bool run(const Pattern::Impl& p, ValueId id, const Next& next) {
    if (p.base) return run(*p.base, id, [&] { return own(p, id, next); });
    return own(p, id, next);
  }

  std::map<std::string, ValueId, std::less<>> bound;
  ValueId failed_at;
  std::string failed_condition;

 private:
  bool own(const Pattern::Impl& p, ValueId id, const Next& next) {
    if (p.test) {
      if (const auto problem = p.test(graph_, id, matcher_.uses(id))) return fail(id, *problem);
    }
    return step([&] {
      if (p.operands) return run_operands(p, id, next);
      if (!p.alternatives.empty())
        return std::any_of(p.alternatives.begin(), p.alternatives.end(),
                           [&](const Pattern& alternative) { return run(alternative.impl(), id, next); });
      if (p.inner) return run_through(p, id, next);
      return p.name.empty() ? next() : bind(p.name, id, next);
    });
  }

  bool run_operands(const Pattern::Impl& p, ValueId id, const Next& next) {
    const Node& node = graph_[id];
    if (node.operands.size() != p.operands->size())
      return fail(id, fmt::format("wanted {} operands, found {}", p.operands->size(), node.operands.size()));
    if (run_in_order(*p.operands, node.operands, 0, next)) return true;
    if (node.operands.size() != 2 || !is_commutative(*node.op) || node.operands[0] == node.operands[1]) return false;
    const ValueId swapped[] = {node.operands[1], node.operands[0]};
    return run_in_order(*p.operands, swapped, 0, next);
  }

  bool run_in_order(const std::vector<Pattern>& patterns, std::span<const ValueId> operands, std::size_t i,
                    const Next& next) {
    if (i == patterns.size()) return next();
    return run(patterns[i].impl(), operands[i], [&] { return run_in_order(patterns, operands, i + 1, next); });
  }

  bool run_through(const Pattern::Impl& p, ValueId id, const Next& next) {
    if (run(p.inner->impl(), id, next)) return true;
    const Node& node = graph_[id];
    const bool skip = node.operands.size() == 1 && std::count(p.skipped.begin(), p.skipped.end(), node.op) > 0;
    return skip && step([&] { return run_through(p, node.operands[0], next); });
  }

  bool bind(const std::string& name, ValueId id, const Next& next) {
    const auto [at, fresh] = bound.emplace(name, id);
    if (!fresh && at->second != id) {
      return fail(id,
                  fmt::format("wanted the same value as '{}', which is {}", name, value_label(graph_, at->second)));
    }
    if (next()) return true;
    if (fresh) bound.erase(name);
    return false;
  }

  /// Runs `rest` with one more condition satisfied.
  template <class Rest>
  bool step(Rest&& rest) {
    ++held_;
    const bool found = rest();
    --held_;
    return found;
  }

  bool fail(ValueId id, std::string condition) {
    if (held_ > most_held_) {
      most_held_ = held_;
      failed_at = id;
      failed_condition = std::move(condition);
    }
    return false;
  }

  const Matcher& matcher_;
  const Graph& graph_;
  int held_ = 0;
  int most_held_ = -1;
};

std::string op_name(const Graph& graph, ValueId id) { return std::string(graph[id].op->name.value); }

Test is_op(const Op& op) {
  return [&op](const Graph& graph, ValueId id, int) -> std::optional<std::string> {
    if (graph[id].op == &op) return std::nullopt;
    return fmt::format("wanted {}, found {}", op.name.value, op_name(graph, id));
  };
}

}  // namespace

Pattern Pattern::as(std::string_view name) const { return make({.base = impl_, .name = std::string(name)}); }

Pattern Pattern::one_use() const {
  return make({.test = [](const Graph&, ValueId, int uses) -> std::optional<std::string> {
                 if (uses == 1) return std::nullopt;
                 return fmt::format("wanted a value with one reader, found {}", uses);
               },
               .base = impl_});
}

Pattern Pattern::where(std::string_view what, Predicate holds) const {
  return make({.test = [text = std::string(what), holds = std::move(holds)](const Graph& graph, ValueId id,
                                                                            int) -> std::optional<std::string> {
                 if (holds(graph, id)) return std::nullopt;
                 return fmt::format("wanted a value that {}", text);
               },
               .base = impl_});
}

Pattern Pattern::dtype(DType dtype) const {
  return make({.test = [dtype](const Graph& graph, ValueId id, int) -> std::optional<std::string> {
                 const DType found = graph[id].type.dtype;
                 if (found == dtype) return std::nullopt;
                 return fmt::format("wanted dtype {}, found {}", lathe::name(dtype), lathe::name(found));
               },
               .base = impl_});
}

Pattern Pattern::rank(int rank) const {
  return make({.test = [rank](const Graph& graph, ValueId id, int) -> std::optional<std::string> {
                 const TensorType& type = graph[id].type;
                 if (type.rank() == rank) return std::nullopt;
                 return fmt::format("wanted rank {}, found {}", rank, type.to_string());
               },
               .base = impl_});
}

Pattern Pattern::attr(std::string_view name, Attribute value) const {
  return make({.test = [name = std::string(name), value = std::move(value)](const Graph& graph, ValueId id,
                                                                            int) -> std::optional<std::string> {
                 const Attribute* found = graph[id].attrs.find(name);
                 if (found && *found == value) return std::nullopt;
                 return fmt::format("wanted {}={}, found {}", name, print_attribute(value),
                                    found ? print_attribute(*found) : "no such attribute");
               },
               .base = impl_});
}

Pattern any() { return make({}); }

Pattern argument() {
  return tested([](const Graph& graph, ValueId id, int) -> std::optional<std::string> {
    if (graph[id].op->as<Argument>()) return std::nullopt;
    return fmt::format("wanted an argument, found {}", op_name(graph, id));
  });
}

Pattern pattern(const Op& op) { return tested(is_op(op)); }

Pattern pattern(const Op& op, std::vector<Pattern> operands) {
  return make({.test = is_op(op), .operands = std::move(operands)});
}

Pattern constant() {
  return constant("is any number", [](double) { return true; });
}

namespace {
/// Matches a constant whose value and dtype satisfy `holds`.
template <class Holds>
Pattern constant_that(std::string what, Holds holds) {
  return tested([what = std::move(what), holds = std::move(holds)](const Graph& graph, ValueId id,
                                                                   int) -> std::optional<std::string> {
    const auto value = uniform_value(graph, id);
    if (value && holds(*value, graph[id].type.dtype)) return std::nullopt;
    return fmt::format("wanted a constant that {}, found {}", what,
                       value ? print_number(*written_number(graph, id)) : op_name(graph, id));
  });
}
}  // namespace

Pattern constant(double value) {
  return constant_that(fmt::format("is {}", print_real(value)), [value](const Number& found, DType dtype) {
    return found == Number(value).rounded_to(dtype) || (std::isnan(found.real()) && std::isnan(value));
  });
}

Pattern constant(std::string_view what, std::function<bool(double)> holds) {
  return constant_that(std::string(what),
                       [holds = std::move(holds)](const Number& found, DType) { return holds(found.real()); });
}

Pattern either(std::vector<Pattern> alternatives) { return make({.alternatives = std::move(alternatives)}); }

Pattern through(std::vector<const Op*> ops, Pattern inner) {
  return make({.inner = std::move(inner), .skipped = std::move(ops)});
}

bool is_commutative(const Op& op) {
  const auto* elementwise = op.as<Elementwise>();
  return elementwise && traits(elementwise->op).commutes;
}

ValueId Match::operator[](std::string_view name) const {
  const auto found = bound_.find(name);
  if (found == bound_.end()) throw InternalError(fmt::format("a pattern binds no value named '{}'", name));
  return found->second;
}

std::string Match::why(const Graph& graph) const {
  if (!failure_) return {};
  return fmt::format("{}: {}\n  {}", failure_->loc.to_string(), failure_->condition,
                     print_node(graph, failure_->value, {.locations = false}));
}

Matcher::Matcher(const Graph& graph) : graph_(graph), uses_(graph.nodes.size(), 0) {
  const auto use = [this](ValueId id) { ++uses_[static_cast<std::size_t>(id.index)]; };
  for (const Node& node : graph.nodes)
    for (const ValueId operand : node.operands) use(operand);
  for (const ValueId id : graph.results()) use(id);
}

Match Matcher::match(const Pattern& pattern, ValueId at) const {
  Search search(*this);
  Match result;
  if (search.run(pattern.impl(), at, [] { return true; })) {
    result.bound_ = std::move(search.bound);
    return result;
  }
  result.failure_ = Match::Failure{search.failed_at, search.failed_condition, graph_[search.failed_at].loc};
  return result;
}

}  // namespace lathe::ir
