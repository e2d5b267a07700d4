#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/node_table.h"

namespace lathe::ir {

class GraphBuilder;
class InferredTypes;
struct Op;

/// A value of a graph under construction. Cheap to copy; the builder must outlive it.
class Value {
 public:
  Value(GraphBuilder& builder, ValueId id) : builder_(&builder), id_(id) {}
  GraphBuilder& builder() const { return *builder_; }
  ValueId id() const { return id_; }
  const Node& node() const;
  const TensorType& type() const { return node().type; }
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }

 private:
  GraphBuilder* builder_;
  ValueId id_;
};

/// Builds graphs. Each op is checked against its record when it is added. Equal pure ops become one node
/// (hash-consing), so a graph never computes the same value twice.
class GraphBuilder : public std::enable_shared_from_this<GraphBuilder> {
 public:
  explicit GraphBuilder(std::string_view name);
  /// Extends an existing graph; its values keep their ids.
  explicit GraphBuilder(Graph graph);
  /// Builds the body of a loop of `outer`, which it keeps alive. Ops with operands of both builders are added here:
  /// see own().
  GraphBuilder(std::string_view name, std::shared_ptr<GraphBuilder> outer);
  virtual ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// Adds an op at the current location. Fills in attribute defaults and runs the shape rule. Throws UserError for
  /// wrong arity [op_arity], attributes [op_attribute], shapes and dtypes (the rule's labels), values of another
  /// builder [op_other_graph], and a second user-defined op of the same name [op_name].
  Value add(const Op& op, std::span<const Value> operands, Attributes attrs = {});
  Value add(const Op& op, std::initializer_list<Value> operands, Attributes attrs = {}) {
    return add(op, std::span<const Value>(operands.begin(), operands.size()), std::move(attrs));
  }

  /// Adds an argument: `op` is ops::input, ops::parameter or ops::state. Names are unique in a graph [argument_name].
  Value argument(const Op& op, std::string_view name, DType dtype, const Shape& shape);
  /// Returns the argument of that name, if it exists.
  std::optional<Value> find_argument(std::string_view name);

  /// Returns the name, numbered if an argument has it.
  std::string free_name(std::string name) const;

  /// Declare outputs and updates. An update keeps dtype and shape [update_type]; a state is updated at most once
  /// [update_twice]; output names are unique [output_name]. Values of other builders are rejected [op_other_graph].
  void output(std::string_view name, const Value& value);
  /// Removes all outputs; their values stay.
  void drop_outputs() { graph_.outputs.clear(); }
  void update(const Value& given_state, const Value& given);

  /// Copies a node of another graph, given mapped operands; keeps its location and name.
  Value copy(const Node& node, std::span<const Value> operands);
  /// Same for a node whose operands' types and display names are unchanged, so that its type is reused. The checks of
  /// its shape rule must be copied separately: see add_checks.
  Value copy_as_typed(const Node& node, std::span<const Value> operands);
  /// Adds run-time checks of another graph.
  void add_checks(std::span<const DimCheck> checks);

  /// Sets the user's name for a value, shown in dumps. The first name wins.
  void set_name(const Value& value, std::string_view name);

  /// Returns the value in this builder. A value of the graph around a body becomes an input of the body, once;
  /// constants are copied. Throws UserError [op_other_graph], at the current location, for a value of any other
  /// builder, such as one of a body that is complete.
  Value own(std::string_view op, const Value& value);
  /// Returns whether own() returns a value, and does not throw.
  bool can_own(const Value& value) const { return &value.builder() == this || is_inside(value.builder()); }
  /// Throws UserError [op_other_graph], at the current location, for a value of another builder.
  void require_own(std::string_view op, const Value& value) const {
    if (&value.builder() != this) throw_other_graph(op, value);
  }
  /// Returns the builder to which an op with these operands is added: the innermost of theirs and this one.
  GraphBuilder& innermost(std::span<const Value> operands);
  /// Returns the builder of the graph around this body, or null.
  const std::shared_ptr<GraphBuilder>& outer() const { return outer_; }
  /// Returns the values of `outer` that have become inputs of the body, in the order of the inputs.
  const std::vector<ValueId>& captured() const { return captured_; }

  const Graph& graph() const { return graph_; }
  /// Returns the finished graph; the builder is empty afterwards.
  Graph finish();
  /// Returns the body that this builder has built. Ops can no longer be added: their operands throw
  /// [op_other_graph].
  Graph close_body();

  const Location& location() const { return location_; }

  /// Sets the location of every op added while it is alive.
  class At {
   public:
    At(GraphBuilder& builder, Location loc) : builder_(builder), saved_(builder.location_) {
      builder.location_ = std::move(loc);
    }
    ~At() { builder_.location_ = std::move(saved_); }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    GraphBuilder& builder_;
    Location saved_;
  };

  /// Returns a new stream number for a random op, so that two draws differ.
  std::int64_t next_stream() { return outer_ ? outer_->next_stream() : next_stream_++; }

 private:
  Value argument(const Op& op, std::string_view name, TensorType type);
  [[noreturn]] void throw_other_graph(std::string_view op, const Value& value) const;
  bool is_inside(const GraphBuilder& other) const;
  Value capture(const Value& value);
  ValueId argument_named(std::string_view name) const;
  TensorType argument_type(DType dtype, const Shape& shape);
  void infer(Node& node);
  Value insert(Node node);
  bool is_first_update(ValueId state);
  void reserve_stream(const Node& node);
  void require_one_record(const Op& op);

  Graph graph_;
  Location location_;
  std::unique_ptr<InferredTypes> inferred_;                // cache for nodes similar to earlier ones
  NodeTable pure_;                                         // for hash-consing
  NodeTable arguments_;                                    // by name
  std::vector<TensorType> argument_types_;                 // shared by some of them
  NodeMap<bool> updated_;                                  // by node
  std::unordered_map<std::string_view, const Op*> owned_;  // user-defined ops by name
  std::int64_t next_stream_ = 0;
  std::shared_ptr<GraphBuilder> outer_;
  std::vector<ValueId> captured_;  // values of outer_
  std::vector<ValueId> inputs_;    // the inputs that they have become
  bool finished_ = false;
};

}  // namespace lathe::ir
