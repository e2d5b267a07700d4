#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/import/onnx/onnx_model.h"
#include "models/import/op_table.h"

namespace lathe::onnx {

/// The version of each domain, by domain; that of ai.onnx is "".
using Opsets = std::map<Text, std::int64_t>;

/// The newest version of ai.onnx whose ops are known.
inline constexpr std::int64_t newest_opset = 27;

/// The newest version of the format that is known.
inline constexpr std::int64_t newest_format = 13;

/// Returns the versions that a model or a function imports. "ai.onnx" is the domain "". Throws UserError
/// [import_file] for a domain with two versions.
Opsets opsets_of(const std::vector<OpsetProto>& imports);

/// The functions of a model, by domain, name and overload. Throws UserError [import_file] for two of one name.
class Functions {
 public:
  explicit Functions(const ModelProto& model);
  /// Returns the function that a node calls; null if it calls an op.
  const FunctionProto* find(const NodeProto& node) const;

 private:
  std::map<std::tuple<Text, Text, Text>, const FunctionProto*> functions_;
};

/// Returns the domain of a node, "" for ai.onnx.
Text domain_of(const NodeProto& node);

/// Returns the name of a node for locations: "/layers.0/attn/MatMul", or "MatMul of y" for a node without a name.
std::string node_name(const NodeProto& node);

/// Throws UserError [import_unsupported] that lists all ops, versions and attributes of a model that `ops` does not
/// have, with their nodes, including those of branches and functions.
void check_ops(const ModelProto& model, const importing::OpTable& ops, const std::string& file);

}  // namespace lathe::onnx
