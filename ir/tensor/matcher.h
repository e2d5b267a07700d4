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

/// A pattern of expressions, composed of smaller patterns:
///   pattern(ops::softmax, {pattern(ops::mul, {any().as("scores"), constant().as("scale")}).one_use()})
/// Patterns are immutable values; every method returns a new one.
class Pattern {
 public:
  /// Binds the value to a name. If a name is used twice, both values must be the same.
  Pattern as(std::string_view name) const;
  /// Requires a single reader; outputs and updates count as readers.
  Pattern one_use() const;
  /// Requires `holds`; `what` completes "wanted a value that ..." if it fails.
  using Predicate = std::function<bool(const Graph&, ValueId)>;
  Pattern where(std::string_view what, Predicate holds) const;
  Pattern dtype(DType dtype) const;
  Pattern rank(int rank) const;
  /// Requires this value of the attribute.
  Pattern attr(std::string_view name, Attribute value) const;

  struct Impl;
  explicit Pattern(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Matches any value.
Pattern any();
/// Matches any argument: an input, parameter or state.
Pattern argument();
/// Matches a value of this op with any operands.
Pattern pattern(const Op& op);
/// Matches a value of this op with these operands; those of a commutative op may be in any order.
Pattern pattern(const Op& op, std::vector<Pattern> operands);
/// Matches a value whose elements all equal one number (see uniform_value). The number must satisfy `holds`, or equal
/// `value` in the value's dtype.
Pattern constant();
Pattern constant(double value);
Pattern constant(std::string_view what, std::function<bool(double)> holds);
/// Matches the first alternative for which the rest of the match succeeds.
Pattern either(std::vector<Pattern> alternatives);
/// Matches `inner` below any number of single-operand ops from `ops`: through({&ops::reshape, &ops::contiguous},
/// any()).
Pattern through(std::vector<const Op*> ops, Pattern inner);

/// Returns whether the op is commutative: add, mul, minimum, maximum, eq, ne, logical_and, logical_or.
bool is_commutative(const Op& op);

/// The bindings of a match, or the reason for its failure.
class Match {
 public:
  explicit operator bool() const { return !failure_; }
  /// Returns the value bound to `name`. Throws InternalError if the match failed or the name is not bound.
  ValueId operator[](std::string_view name) const;
  bool has(std::string_view name) const { return bound_.find(name) != bound_.end(); }

  /// The condition that failed after the largest number of satisfied ones: the most likely one to fix.
  struct Failure {
    ValueId value;
    std::string condition;  ///< "wanted softmax, found mul"
    Location loc;
  };
  const std::optional<Failure>& failure() const { return failure_; }
  /// Returns "mha.cpp:14: wanted softmax, found mul\n  %12 = mul %3, %4 : f32[n]", or an empty string after a match.
  /// `graph` must be the matched graph.
  std::string why(const Graph& graph) const;

 private:
  friend class Matcher;
  std::map<std::string, ValueId, std::less<>> bound_;
  std::optional<Failure> failure_;
};

/// Matches patterns against the values of a graph, which must outlive the matcher and not change.
class Matcher {
 public:
  explicit Matcher(const Graph& graph);
  Match match(const Pattern& pattern, ValueId at) const;
  /// Returns the number of operands, outputs and updates that read a value.
  int uses(ValueId id) const { return uses_[static_cast<std::size_t>(id.index)]; }
  const Graph& graph() const { return graph_; }

 private:
  const Graph& graph_;
  std::vector<int> uses_;
};

}  // namespace lathe::ir
