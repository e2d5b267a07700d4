#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "models/import/import.h"
#include "models/import/onnx/cached_inputs.h"
#include "models/import/onnx/check_ops.h"
#include "models/import/onnx/dim_names.h"
#include "models/import/onnx/tensor_data.h"
#include "models/import/ops/sizes/input_dims.h"

namespace lathe::onnx {

inline constexpr int most_nested = 64;  ///< calls, branches and bodies

/// The values and versions that the nodes of a graph, a branch or a function see.
struct NodeScope {
  const NodeScope* around = nullptr;  ///< whose values a branch sees too
  const Opsets* opsets = nullptr;
  const Graph* graph = nullptr;  ///< that nodes are added to: that of the model, or the body of a loop
  std::string path = {};         ///< of the calls around a function: "/layers.0/Rotary"
  /// Attributes of the call that the nodes of a function refer to.
  std::map<std::string, importing::SourceAttribute, std::less<>> attributes = {};
  std::unordered_map<Text, importing::Value> values = {};
  int depth = 0;

  /// Returns a value by name; null if none is defined.
  const importing::Value* find(Text name) const;
};

/// Builds the graph of a model, node by node.
class ModelImporter {
 public:
  ModelImporter(const std::filesystem::path& path, const ModelProto& model, TensorData& data,
                const importing::OpTable& ops, const importing::ImportOptions& options,
                importing::InputDims& input_dims);

  importing::ImportedGraph import();

 private:
  /// Defines a value, once.
  void define(NodeScope& scope, Text name, importing::Value value) const;
  void add_inputs(NodeScope& scope);
  /// Returns the shape of an input: that of the options, or of the file.
  Shape shape_of(const ValueProto& input);
  void add_outputs(const NodeScope& scope);
  void add_initializers(NodeScope& scope, const GraphProto& graph);
  void add_nodes(NodeScope& scope, const std::vector<NodeProto>& nodes);
  void add_node(NodeScope& scope, const NodeProto& node);
  void add_call(NodeScope& scope, const NodeProto& node, const FunctionProto& function);
  void add_op(NodeScope& scope, const NodeProto& node);
  /// Returns the graphs that attributes of a node have, such as branches and bodies of loops.
  std::map<std::string, importing::SourceBody, std::less<>> bodies(const NodeScope& scope, const NodeProto& node);
  importing::Results add_body(const NodeScope& scope, const NodeProto& node, const AttributeProto& body,
                              std::vector<importing::Value> inputs, const Graph& graph);
  /// Returns a tensor of the file as a parameter, a state or a constant.
  importing::Value initializer(const TensorProto& proto);
  /// Returns numbers that become a parameter or a state at their first use.
  importing::Value stored(const std::string& name, HostTensor tensor, bool is_trained);
  std::vector<importing::Value> operands(const NodeScope& scope, const NodeProto& node) const;
  std::map<std::string, importing::SourceAttribute, std::less<>> attributes(const NodeScope& scope,
                                                                            const NodeProto& node);
  importing::SourceAttribute attribute(const NodeScope& scope, const NodeProto& node,
                                       const AttributeProto& attribute);
  Location location(const NodeScope& scope, const NodeProto& node) const;
  [[noreturn]] void fail(const NodeScope& scope, const NodeProto& node, std::string_view message,
                         std::string_view label, std::string_view hint = {}) const;

  std::string file_;
  const ModelProto& model_;
  TensorData& data_;
  const importing::OpTable& ops_;
  const importing::ImportOptions& options_;
  Functions functions_;
  DimNames dims_;
  importing::InputDims& input_dims_;
  CachedInputs caches_;
  importing::ImportedGraph imported_;
  std::int64_t nodes_ = 0;  ///< added so far, with those of calls
};

}  // namespace lathe::onnx
