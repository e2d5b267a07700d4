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
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "models/import/onnx/onnx_model.h"

namespace lathe::onnx {

/// Returns the element type of a dtype in files.
ElementType element_type_of(DType dtype);

/// Attributes of nodes. Names, and the text of a text attribute, must outlive the model.
AttributeProto integer_attribute(Text name, std::int64_t value);
AttributeProto integers_attribute(Text name, std::vector<std::int64_t> values);
AttributeProto real_attribute(Text name, double value);
AttributeProto text_attribute(Text name, Text value);

using Attributes = std::vector<AttributeProto>;

/// A graph of ONNX nodes under construction. Owns the names and the constants that the graph refers to. Values and
/// nodes get names that are free.
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
  /// Renames the last result of the last node, which has no readers yet.
  void rename_last(Text name);
  /// Adds a node with a given name for the only result.
  void add_named(Text op, std::vector<Text> inputs, Text result);

  /// Returns the name of a constant; equal constants share one node.
  Text constant(const HostTensor& numbers);
  Text integers(const std::vector<std::int64_t>& values);  ///< i64[n]
  Text scalar(const Number& value, DType dtype);           ///< of rank 0

  /// Adds an initializer that refers to the elements of a tensor.
  void initializer(Text name, const HostTensor& tensor);

  GraphProto& graph() { return graph_; }
  const GraphProto& graph() const { return graph_; }

 private:
  Text node_name(Text op);

  static std::string key_of(const NodeProto& node);

  using ConstantKey = std::tuple<DType, std::vector<std::int64_t>, std::string>;
  GraphProto graph_;
  std::deque<std::string> texts_;
  std::set<std::string, std::less<>> values_;
  std::map<std::string, int, std::less<>> value_counts_, node_counts_;  ///< numbers used, by wish
  std::map<ConstantKey, Text> constants_;
  std::map<std::string, Text> nodes_;  ///< results by the op, operands and attributes of the node
  std::string last_key_;               ///< of the last node
  std::string module_;
};

}  // namespace lathe::onnx
