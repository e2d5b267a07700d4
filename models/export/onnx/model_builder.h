#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "models/import/onnx/onnx_model.h"

namespace lathe::onnx {

/// Returns the element type of a dtype in files.
ElementType element_type_of(DType dtype);

/// Attributes of nodes. Names, and the text of a text attribute, must outlive the model.
AttributeProto integer_attribute(Text name, std::int64_t value);
AttributeProto integers_attribute(Text name, std::vector<std::int64_t> values);
AttributeProto real_attribute(Text name, double value);
AttributeProto text_attribute(Text name, Text value);
AttributeProto graph_attribute(Text name, GraphProto value);

using Attributes = std::vector<AttributeProto>;

/// A graph of ONNX nodes under construction. Owns the names and the constants that the graph refers to. Values and
/// nodes get names that are free. Bodies of loops see the values around them, and constants are added around all
/// bodies.
class ModelBuilder {
 public:
  ModelBuilder() = default;
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

  /// Returns the text in memory that lives as long as the builder.
  Text keep(std::string text);
  /// Reserves the name of a value. Returns false if it is taken.
  bool reserve(std::string_view name);
  /// Returns a name for a value: `wish`, or `wish` and a number if it is taken.
  Text free_name(std::string_view wish);

  /// Later nodes are named after this path: "/layers.0/attn/MatMul". Empty: the top of the model.
  void set_module(std::string_view path);

  /// Adds a node of the default domain, unless there is an equal one. Returns the name of its result with index
  /// `result`, which is the last one.
  Text add(Text op, std::vector<Text> inputs, Attributes attributes = {}, std::size_t result = 0);
  /// Adds a node of which there may be an equal one, such as a loop. Returns the names of all its results.
  std::vector<Text> add_new(Text op, std::vector<Text> inputs, Attributes attributes, std::size_t results);
  /// Renames a result of a node of the current graph or body, which has no readers yet.
  void rename(Text result, Text name);
  /// Adds a node with a given name for the only result.
  void add_named(Text op, std::vector<Text> inputs, Text result);

  /// Starts the body of a loop, to which later nodes are added until close_body() returns them.
  void open_body() { levels_.emplace_back(), level_ = levels_.size() - 1; }
  std::vector<NodeProto> close_body();
  /// Adds nodes around all bodies while it is alive.
  class Around {
   public:
    explicit Around(ModelBuilder& to) : to_(to), level_(std::exchange(to.level_, 0)) {}
    ~Around() { to_.level_ = level_; }
    Around(const Around&) = delete;
    Around& operator=(const Around&) = delete;

   private:
    ModelBuilder& to_;
    std::size_t level_;
  };
  /// Returns the nodes of the current graph or body so far.
  const std::vector<NodeProto>& nodes() const { return level_ == 0 ? graph_.nodes : levels_[level_].nodes; }

  /// Returns the description of a value. Unknown sizes have names.
  ValueProto described(std::string_view name, const ir::TensorType& type);

  /// Returns the name of a constant; equal constants share one node.
  Text constant(const HostTensor& numbers);
  Text integers(const std::vector<std::int64_t>& values);  ///< i64[n]
  Text scalar(const Number& value, DType dtype);           ///< of rank 0

  /// Adds an initializer that refers to the elements of a tensor.
  void initializer(Text name, const HostTensor& tensor);

  GraphProto& graph() { return graph_; }
  const GraphProto& graph() const { return graph_; }

 private:
  /// A graph or body: its nodes, and their results by the op, operands and attributes.
  struct Level {
    std::vector<NodeProto> nodes;  ///< of a body
    std::map<std::string, Text> known;
    std::string last_key;  ///< of the last node
  };

  Text node_name(Text op);
  std::vector<NodeProto>& mutable_nodes() { return level_ == 0 ? graph_.nodes : levels_[level_].nodes; }
  static std::string key_of(const NodeProto& node);

  using ConstantKey = std::tuple<DType, std::vector<std::int64_t>, std::string>;
  GraphProto graph_;
  std::deque<std::string> texts_;
  std::set<std::string, std::less<>> values_;
  std::map<std::string, int, std::less<>> value_counts_, node_counts_;  ///< numbers used, by wish
  std::map<ConstantKey, Text> constants_;
  std::vector<Level> levels_ = std::vector<Level>(1);  ///< the graph, then the bodies that are open
  std::size_t level_ = 0;                              ///< to which nodes are added
  std::string module_;
};

}  // namespace lathe::onnx
