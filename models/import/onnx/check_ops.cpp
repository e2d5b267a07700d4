#include "models/import/onnx/check_ops.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "ir/support/reports/unsupported_parts.h"

namespace lathe::onnx {

namespace {

/// Collects the parts of a model that are not supported, with their nodes.
class Check {
 public:
  Check(const ModelProto& model, const importing::OpTable& ops) : functions_(model), ops_(ops) {}

  void graph(const GraphProto& graph, const Opsets& opsets) { nodes(graph.nodes, opsets); }

  void nodes(const std::vector<NodeProto>& nodes, const Opsets& opsets) {
    for (const NodeProto& node : nodes) this->node(node, opsets);
  }

  void report(const std::string& file) const {
    std::string_view hint;
    if (has_older_) hint = "export the model with opset 13 or newer, or convert it with onnx.version_converter";
    parts_.report(file, "Lathe does not import", "import_unsupported", hint);
  }

 private:
  void add(const NodeProto& node, std::string part) { parts_.add(std::move(part), node_name(node)); }

  void node(const NodeProto& node, const Opsets& opsets) {
    if (functions_.find(node)) return;  // checked once, with its own versions
    const Text domain = domain_of(node);
    const std::string name = domain.empty() ? std::string(node.op) : fmt::format("{}.{}", domain, node.op);
    const auto version = opsets.find(domain);
    if (version == opsets.end()) return add(node, fmt::format("{}, whose domain has no version in the file", name));
    const importing::OpRecord* const record = ops_.find(domain, node.op, version->second);
    if (!record) {
      const std::string known = ops_.versions(domain, node.op);
      has_older_ = has_older_ || (domain.empty() && !known.empty() && version->second < 13);
      return add(node, known.empty() ? fmt::format("the op {}", name)
                                     : fmt::format("the op {} of opset {}, which is supported in {}", name,
                                                   version->second, known));
    }
    for (const AttributeProto& attribute : node.attributes) {
      if (!importing::has_attribute(*record, attribute.name))
        add(node, fmt::format("the attribute {} of {}", attribute.name, name));
      else if (attribute.graph)
        graph(*attribute.graph, opsets);
    }
  }

  Functions functions_;
  const importing::OpTable& ops_;
  UnsupportedParts parts_;
  bool has_older_ = false;  ///< an op of an older opset than those that are supported
};

}  // namespace

Opsets opsets_of(const std::vector<OpsetProto>& imports) {
  Opsets opsets;
  for (const OpsetProto& opset : imports) {
    const Text domain = opset.domain == "ai.onnx" ? "" : opset.domain;
    if (const auto [at, is_new] = opsets.emplace(domain, opset.version); !is_new && at->second != opset.version)
      throw UserError(fmt::format("the domain '{}' has the versions {} and {}", domain, at->second, opset.version),
                      "import_file");
  }
  return opsets;
}

Functions::Functions(const ModelProto& model) {
  for (const FunctionProto& function : model.functions) {
    const Text domain = function.domain == "ai.onnx" ? "" : function.domain;
    if (!functions_.emplace(std::tuple(domain, function.name, function.overload), &function).second)
      throw UserError(fmt::format("the function {} is defined twice", function.name), "import_file");
  }
}

const FunctionProto* Functions::find(const NodeProto& node) const {
  const auto found = functions_.find({domain_of(node), node.op, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

Text domain_of(const NodeProto& node) { return node.domain == "ai.onnx" ? "" : node.domain; }

std::string node_name(const NodeProto& node) {
  if (!node.name.empty()) return std::string(node.name);
  return node.outputs.empty() ? std::string(node.op) : fmt::format("{} of {}", node.op, node.outputs[0]);
}

void check_ops(const ModelProto& model, const importing::OpTable& ops, const std::string& file) {
  if (model.ir_version > newest_format)
    throw UserError(fmt::format("{} has version {} of the format", file, model.ir_version), "import_unsupported",
                    fmt::format("version {} and less are known", newest_format));
  const Opsets opsets = opsets_of(model.opsets);
  if (const auto found = opsets.find(""); found != opsets.end() && found->second > newest_opset)
    throw UserError(fmt::format("{} uses opset {} of ai.onnx", file, found->second), "import_unsupported",
                    fmt::format("export the model with opset {} or less", newest_opset));
  Check check(model, ops);
  check.graph(*model.graph, opsets);
  for (const FunctionProto& function : model.functions) check.nodes(function.nodes, opsets_of(function.opsets));
  check.report(file);
}

}  // namespace lathe::onnx
