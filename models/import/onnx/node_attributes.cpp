#include <fmt/core.h>

#include <set>

#include "models/import/onnx/model_importer.h"

/// The attributes of a node, as the layer for all formats has them.
namespace lathe::onnx {

using importing::SourceAttribute;

SourceAttribute ModelImporter::attribute(const NodeScope& scope, const NodeProto& node,
                                         const AttributeProto& attribute) {
  using Kind = AttributeProto::Kind;
  switch (attribute.kind) {
    case Kind::real: return static_cast<double>(attribute.real);
    case Kind::integer: return attribute.integer;
    case Kind::text: return std::string(attribute.text);
    case Kind::reals: return std::vector<double>(attribute.reals.begin(), attribute.reals.end());
    case Kind::integers: return attribute.integers;
    case Kind::texts: return std::vector<std::string>(attribute.texts.begin(), attribute.texts.end());
    case Kind::tensor:
      if (attribute.tensor) return data_.read(*attribute.tensor);
      break;
    default: break;
  }
  fail(scope, node, fmt::format("the attribute {} has a kind that is not supported", attribute.name),
       "import_attribute");
}

std::map<std::string, SourceAttribute, std::less<>> ModelImporter::attributes(const NodeScope& scope,
                                                                              const NodeProto& node) {
  std::map<std::string, SourceAttribute, std::less<>> all;
  std::set<Text> names;
  for (const AttributeProto& given : node.attributes) {
    if (!names.insert(given.name).second)
      fail(scope, node, fmt::format("the attribute {} is given twice", given.name), "import_attribute");
    if (given.graph) continue;  // one of bodies()
    if (given.reference.empty()) {
      all.insert_or_assign(std::string(given.name), attribute(scope, node, given));
    } else if (const auto found = scope.attributes.find(given.reference); found != scope.attributes.end()) {
      all.insert_or_assign(std::string(given.name), found->second);
    }
  }
  return all;
}

}  // namespace lathe::onnx
