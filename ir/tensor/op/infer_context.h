#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct Op;

/// The input of a shape rule, and its error reporting.
class InferContext {
 public:
  InferContext(const Op& op, const Graph& graph, std::span<const ValueId> operands, const Attributes& attrs,
               const Location& loc, std::vector<DimCheck>& checks)
      : op_(op), graph_(graph), operands_(operands), attrs_(attrs), loc_(loc), checks_(checks) {}

  int arity() const { return static_cast<int>(operands_.size()); }
  const TensorType& operand(int i) const { return graph_[operands_[i]].type; }
  const Node& operand_node(int i) const { return graph_[operands_[i]]; }
  ValueId operand_id(int i) const { return operands_[i]; }
  const Graph& graph() const { return graph_; }
  template <class T>
  const T& attr(std::string_view name) const {
    return attrs_.get<T>(name);
  }
  const Attributes& attrs() const { return attrs_; }
  const Location& location() const { return loc_; }
  const Op& op() const { return op_; }

  /// Throws a UserError at the user's line: "<loc>: <op>: <message>  [label]\n  hint".
  [[noreturn]] void fail(std::string_view label, std::string_view message, std::string_view hint = {}) const;
  void require(bool condition, std::string_view label, std::string_view message, std::string_view hint = {}) const {
    if (!condition) fail(label, message, hint);
  }
  /// Fails if a and b are known to differ; records a run-time check if this depends on bound dims.
  void require_equal(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                     std::string_view hint = {}) const;
  /// Same for a <= b.
  void require_at_most(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                       std::string_view hint = {}) const;
  /// Records a run-time check raised by another rule.
  void add_check(DimCheck check) const { checks_.push_back(std::move(check)); }
  /// Returns a dim index; negative values count from the end: -1 is the last. Fails with [dim_range].
  int axis(std::int64_t axis, int rank) const;

 private:
  const Op& op_;
  const Graph& graph_;
  std::span<const ValueId> operands_;
  const Attributes& attrs_;
  const Location& loc_;
  std::vector<DimCheck>& checks_;
};

}  // namespace lathe::ir
