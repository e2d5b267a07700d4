#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "models/export/onnx/dim_values.h"
#include "models/export/onnx/model_builder.h"

namespace lathe::onnx {

using Ints = std::vector<std::int64_t>;

class LoopExporter;

/// One op of a graph that is exported: the op, the names of its operands in the model, and the functions that add
/// nodes.
class OpExport {
 public:
  OpExport(const ir::Graph& graph, ir::ValueId id, std::vector<Text> operands, ModelBuilder& to, DimValues& dims,
           LoopExporter& loops, std::int64_t opset)
      : graph_(graph),
        id_(id),
        node_(graph[id]),
        operands_(std::move(operands)),
        to_(to),
        dims_(dims),
        loops_(loops),
        opset_(opset) {}

  std::int64_t opset() const { return opset_; }
  const ir::Node& node() const { return node_; }
  ir::ValueId id() const { return id_; }
  template <class T>
  const T& attr(std::string_view name) const {
    return node_.attrs.get<T>(name);
  }
  const ir::TensorType& result() const { return node_.type; }
  DType dtype() const { return node_.type.dtype; }
  int rank() const { return node_.type.rank(); }

  std::size_t count() const { return operands_.size(); }
  /// Returns the name of an operand.
  Text operator[](std::size_t i) const { return operands_[i]; }
  const std::vector<Text>& operands() const { return operands_; }
  const ir::TensorType& type(std::size_t i) const { return graph_[node_.operands[i]].type; }
  /// Returns the node that computes an operand.
  const ir::Node& operand_node(std::size_t i) const { return graph_[node_.operands[i]]; }
  const ir::Graph& graph() const { return graph_; }

  /// Returns a dim counted from the front.
  std::int64_t axis(std::string_view attribute, int rank) const;

  Text add(Text op, std::vector<Text> inputs, Attributes attributes = {}, std::size_t result = 0) const {
    return to_.add(op, std::move(inputs), std::move(attributes), result);
  }
  ModelBuilder& model() const { return to_; }
  DimValues& dims() const { return dims_; }
  LoopExporter& loops() const { return loops_; }
  Text constant(const HostTensor& numbers) const { return to_.constant(numbers); }
  Text integers(const Ints& values) const { return to_.integers(values); }
  Text scalar(const Number& value, DType dtype) const { return to_.scalar(value, dtype); }
  Text keep(std::string text) const { return to_.keep(std::move(text)); }
  /// Sizes as values: i64[1], i64[], i64[rank].
  Text vector(const Dim& size) const { return dims_.vector(size); }
  Text size(const Dim& size) const { return dims_.scalar(size); }
  Text shape(const Shape& shape) const { return dims_.shape(shape); }

  Text cast(Text value, DType to) const;
  Text transpose(Text value, const Ints& perm) const;
  Text reshape(Text value, const Shape& shape) const;
  Text unsqueeze(Text value, const Ints& axes) const { return add("Unsqueeze", {value, integers(axes)}); }
  Text expand(Text value, const Shape& shape) const { return add("Expand", {value, this->shape(shape)}); }
  /// i64[size]: 0, 1, ..
  Text range(const Dim& size) const;
  /// All elements of a shape have this value.
  Text full(const Shape& shape, const Number& value, DType dtype) const;
  /// condition ? a : b. ONNX Runtime chooses between bools by logic.
  Text where(Text condition, Text a, Text b, DType dtype) const;

  /// Calls build(operands) for float operands in a dtype that the ONNX op has: bf16 is computed in f32, if
  /// `is_missing` says so.
  template <class Build>
  Text without_bf16(bool is_missing, const Build& build) const {
    if (!is_missing || dtype() != bf16) return build(operands_);
    std::vector<Text> wide;
    for (std::size_t i = 0; i < count(); ++i)
      wide.push_back(type(i).dtype == bf16 ? cast(operands_[i], f32) : operands_[i]);
    return cast(build(wide), bf16);
  }

 private:
  const ir::Graph& graph_;
  ir::ValueId id_;
  const ir::Node& node_;
  std::vector<Text> operands_;
  ModelBuilder& to_;
  DimValues& dims_;
  LoopExporter& loops_;
  std::int64_t opset_;
};

/// The name of an ONNX op as a template argument.
template <std::size_t size>
struct OpName {
  consteval OpName(const char (&name)[size]) {
    std::copy_n(name, size, text);
  }  // NOLINT(google-explicit-constructor)
  char text[size] = {};
};

/// Adds an op of the same meaning, with the same operands and without attributes.
template <OpName name>
Text same_op(const OpExport& op) {
  return op.add(name.text, op.operands());
}
/// The same for an op that has no bf16 before opset 22.
template <OpName name>
Text same_float_op(const OpExport& op) {
  return op.without_bf16(op.opset() < 22,
                         [&](const std::vector<Text>& operands) { return op.add(name.text, operands); });
}

}  // namespace lathe::onnx
