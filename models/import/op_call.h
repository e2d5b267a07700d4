#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/import/imported_value.h"
#include "models/import/source_node.h"

namespace lathe::importing {

/// One node on its way into a graph: the operands and attributes that an importing function reads. Reads are checked:
/// each error is a UserError at the node that names the operand or attribute.
class OpCall {
 public:
  OpCall(const SourceNode& node, std::vector<Value> operands, Graph graph)
      : node_(node), operands_(std::move(operands)), graph_(std::move(graph)) {}

  const SourceNode& node() const { return node_; }
  const Graph& graph() const { return graph_; }
  std::int64_t version() const { return node_.version; }
  const std::vector<Value>& operands() const { return operands_; }
  std::size_t count() const { return operands_.size(); }
  bool has(std::size_t i) const { return i < operands_.size() && !operands_[i].is_absent(); }
  /// Returns whether an operand is a number of the program, such as 2 or a size, and not a tensor.
  bool is_number(std::size_t i) const { return i < node_.numbers.size() && node_.numbers[i]; }
  /// Returns the operands of the argument with this number, for formats with named arguments. All must be given.
  std::vector<Value> group(std::size_t i) const;
  /// Returns whether the model reads a result of the node.
  bool reads(std::size_t result) const { return result < node_.results.size() && node_.results[result]; }

  /// Returns an operand. Throws [import_operand] if it is not given.
  const Value& operand(std::size_t i) const;
  Tensor tensor(std::size_t i) const { return operand(i).in(graph_); }
  /// Returns all operands, which must be given.
  std::vector<Tensor> tensors() const;
  DType dtype(std::size_t i) const { return operand(i).dtype(); }

  /// Return an operand that must be known at import: numbers, or dims. `name` is used in errors. Throws [import_size]
  /// for a value that is computed at run time.
  const HostTensor& numbers(std::size_t i, std::string_view name) const;
  std::vector<Dim> dims(std::size_t i, std::string_view name) const;
  std::vector<std::int64_t> integers(std::size_t i, std::string_view name) const;
  std::int64_t integer(std::size_t i, std::string_view name) const;

  /// Return an attribute. Without a fallback it must be given [import_attribute].
  bool has(std::string_view attribute) const { return node_.attributes.contains(attribute); }
  std::int64_t integer(std::string_view attribute) const;
  std::int64_t integer(std::string_view attribute, std::int64_t fallback) const;
  bool flag(std::string_view attribute, bool fallback) const;
  double real(std::string_view attribute) const;
  double real(std::string_view attribute, double fallback) const;
  std::string text(std::string_view attribute, std::string_view fallback) const;
  std::vector<std::int64_t> integers(std::string_view attribute) const;
  std::vector<std::int64_t> integers(std::string_view attribute, std::vector<std::int64_t> fallback) const;
  template <class T>
  const T* find(std::string_view attribute) const {
    const SourceAttribute* const found = attribute_of(attribute);
    return found ? std::get_if<T>(found) : nullptr;
  }
  bool has_body(std::string_view attribute) const { return node_.bodies.contains(attribute); }
  /// Adds the nodes of a graph attribute to `graph`. Returns its outputs. Throws [import_attribute] if it is missing.
  Results run_body(std::string_view attribute, std::vector<Value> inputs, const Graph& graph) const;
  /// Returns whether an operand has rows of the runs before that the graph keeps in a state.
  bool is_kept(std::size_t i) const;
  /// Joins operand `i`, rows of the runs before, with new rows along a dim: in its state if it has one.
  Tensor joined(std::size_t i, const Tensor& rows, int dim) const;
  /// Marks attributes that have no effect in this call.
  void ignore(std::initializer_list<std::string_view> attributes) const;
  /// Throws [import_attribute] for an attribute that was not read.
  void require_all_read() const;

  /// Returns an axis counted from the front. Throws [import_attribute] unless it is in [-rank, rank).
  int axis(std::int64_t axis, int rank) const;

  /// Notes that the result would be known at import if `b` divided `a`.
  void note_division(const Dim& a, const Dim& b) const;
  const std::optional<NeededMultiple>& needed_multiple() const { return needed_; }

  /// Throws [import_size] at the node, as a SizeMultiple if `needed` is given.
  [[noreturn]] void fail_size(std::string_view message, const std::optional<NeededMultiple>& needed,
                              std::string_view hint = {}) const;
  /// Throws a UserError at the node.
  [[noreturn]] void fail(std::string_view message, std::string_view label = "import_unsupported",
                         std::string_view hint = {}) const;

 private:
  const SourceAttribute* attribute_of(std::string_view name) const;
  template <class T>
  const T& read(std::string_view name) const;
  [[noreturn]] void wrong_kind(std::string_view name, std::string_view wanted) const;

  const SourceNode& node_;
  std::vector<Value> operands_;
  Graph graph_;
  mutable std::set<std::string_view> read_;  ///< names in node_.attributes
  mutable std::optional<NeededMultiple> needed_;
};

}  // namespace lathe::importing
