#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/node_table.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

class InferredTypes;

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

/// Makes graphs. Each op is checked against its record as it is added, and equal pure ops become one node
/// (hash-consing), so a graph never computes the same thing twice.
class GraphBuilder : public std::enable_shared_from_this<GraphBuilder> {
 public:
  explicit GraphBuilder(std::string_view name);
  /// Goes on with a graph: its values keep their ids.
  explicit GraphBuilder(Graph graph);
  virtual ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// Adds one op at the current location. Fills attribute defaults, runs the shape rule. Throws UserError for wrong
  /// arity [op_arity], attributes [op_attribute], shapes and dtypes (the rule's labels), [op_other_graph], and for a
  /// second op of a program's own by one name [op_name].
  Value add(const Op& op, std::span<const Value> operands, Attributes attrs = {});
  Value add(const Op& op, std::initializer_list<Value> operands, Attributes attrs = {}) {
    return add(op, std::span<const Value>(operands.begin(), operands.size()), std::move(attrs));
  }

  /// An argument: `op` is one of ops::input, ops::parameter, ops::state. Names are unique in a graph [argument_name].
  Value argument(const Op& op, std::string_view name, DType dtype, const Shape& shape);
  /// The argument of that name, if there is one.
  std::optional<Value> find_argument(std::string_view name);

  /// Declares outputs and updates. An update keeps dtype and shape [update_type]; a state is updated at most once
  /// [update_twice]; output names are unique [output_name]. Values of other builders are errors [op_other_graph].
  void output(std::string_view name, const Value& value);
  void update(const Value& state, const Value& value);

  /// Copies one node of another graph, operands already mapped; keeps its location and name.
  Value copy(const Node& node, std::span<const Value> operands);
  /// The same for a node whose operands' types look as they did in its graph, so that its own type is known. The
  /// checks of its shape rule are among those of its graph: see add_checks.
  Value copy_as_typed(const Node& node, std::span<const Value> operands);
  /// Carries another graph's run-time checks over.
  void add_checks(std::span<const DimCheck> checks);

  /// The user's name for a value, shown in dumps. The first name wins.
  void set_name(const Value& value, std::string_view name);

  /// Throws UserError [op_other_graph], at the current location, for a value of another builder.
  void require_own(std::string_view op, const Value& value) const;

  const Graph& graph() const { return graph_; }
  /// The finished graph; the builder is empty afterwards.
  Graph finish();

  const Location& location() const { return location_; }

  /// Sets the location of every op added while it lives.
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

  /// A fresh number for an op that draws random values, so that two draws differ.
  std::int64_t next_stream() { return next_stream_++; }

 private:
  Value argument(const Op& op, std::string_view name, TensorType type);
  ValueId argument_named(std::string_view name) const;
  TensorType argument_type(DType dtype, const Shape& shape);
  void infer(Node& node);
  Value insert(Node node);
  bool is_first_update(ValueId state);
  void reserve_stream(const Node& node);
  void require_one_record(const Op& op);

  Graph graph_;
  Location location_;
  std::unique_ptr<InferredTypes> inferred_;                // for nodes like those before
  NodeTable pure_;                                         // for hash-consing
  NodeTable arguments_;                                    // by name
  std::vector<TensorType> argument_types_;                 // that some of them share
  std::vector<bool> updated_;                              // by node
  std::unordered_map<std::string_view, const Op*> owned_;  // a program's own ops by name
  std::int64_t next_stream_ = 0;
};

}  // namespace lathe::ir
