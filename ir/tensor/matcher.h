#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

/// A shape of expression to look for, built from small parts:
///   pattern(ops::softmax, {pattern(ops::mul, {any().as("scores"), constant().as("scale")}).one_use()})
/// Patterns are values; every method returns a new one.
class Pattern {
 public:
  /// Binds the value to a name. A name used twice must be the same value in both places.
  Pattern as(std::string_view name) const;
  /// The value has a single reader, which outputs and updates count as.
  Pattern one_use() const;
  /// The value satisfies `holds`; `what` completes "wanted a value that ..." when it does not.
  using Predicate = std::function<bool(const Graph&, ValueId)>;
  Pattern where(std::string_view what, Predicate holds) const;
  Pattern dtype(DType dtype) const;
  Pattern rank(int rank) const;
  /// The attribute has this value.
  Pattern attr(std::string_view name, Attribute value) const;

  struct Impl;
  explicit Pattern(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Any value at all.
Pattern any();
/// Any argument: an input, parameter or state.
Pattern argument();
/// A value of this op, whatever its operands.
Pattern pattern(const Op& op);
/// A value of this op with these operands; those of a commutative op may stand in any order.
Pattern pattern(const Op& op, std::vector<Pattern> operands);
/// A value that is one number everywhere (see uniform_value), and the number satisfies `holds`, or is `value` as its
/// dtype has it.
Pattern constant();
Pattern constant(double value);
Pattern constant(std::string_view what, std::function<bool(double)> holds);
/// The first alternative that lets the rest of the match succeed.
Pattern either(std::vector<Pattern> alternatives);
/// `inner`, under any number of single-operand ops from `ops`: through({&ops::reshape, &ops::contiguous}, any()).
Pattern through(std::vector<const Op*> ops, Pattern inner);

/// Whether swapping the op's two operands changes nothing: add, mul, minimum, maximum, eq, ne, logical_and,
/// logical_or.
bool is_commutative(const Op& op);

/// What a match bound, or why there was none.
class Match {
 public:
  explicit operator bool() const { return !failure_; }
  /// The value bound to `name`; InternalError where the match failed or nothing is bound.
  ValueId operator[](std::string_view name) const;
  bool has(std::string_view name) const { return bound_.find(name) != bound_.end(); }

  /// The condition that failed after the most others held: the one a person would change.
  struct Failure {
    ValueId value;
    std::string condition;  ///< "wanted softmax, found mul"
    Location loc;
  };
  const std::optional<Failure>& failure() const { return failure_; }
  /// "mha.cpp:14: wanted softmax, found mul\n  %12 = mul %3, %4 : f32[n]"; empty after a match. `graph` is the one
  /// that was matched.
  std::string why(const Graph& graph) const;

 private:
  friend class Matcher;
  std::map<std::string, ValueId, std::less<>> bound_;
  std::optional<Failure> failure_;
};

/// Matches patterns against the values of one graph, which must outlive it unchanged.
class Matcher {
 public:
  explicit Matcher(const Graph& graph);
  Match match(const Pattern& pattern, ValueId at) const;
  /// How many operands, outputs and updates read a value.
  int uses(ValueId id) const { return uses_[static_cast<std::size_t>(id.index)]; }
  const Graph& graph() const { return graph_; }

 private:
  const Graph& graph_;
  std::vector<int> uses_;
};

}  // namespace lathe::ir
