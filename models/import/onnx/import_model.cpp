#include "models/import/onnx/import_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "models/import/onnx/model_importer.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

importing::ImportedGraph import_model(const std::filesystem::path& file, const importing::ImportOptions& options) {
  const auto mapped = MappedFile::open(file);
  const std::string name = file.filename().string();
  const ModelProto model = read_model(mapped->bytes(), name);
  const importing::OpTable ops = standard_ops();
  check_ops(model, ops, name);
  return importing::with_input_dims(options.sizes, [&](importing::InputDims& input_dims) {
    TensorData data(file, mapped);
    return ModelImporter(file, model, data, ops, options, input_dims).import();
  });
}

std::vector<ModelInput> model_inputs(const std::filesystem::path& file) {
  const auto mapped = MappedFile::open(file);
  const std::string name = file.filename().string();
  const ModelProto model = read_model(mapped->bytes(), name);
  std::vector<ModelInput> inputs;
  for (const ValueProto& input : model.graph->inputs) {
    const auto is_input = [&](const TensorProto& tensor) { return tensor.name == input.name; };
    if (std::ranges::any_of(model.graph->initializers, is_input)) continue;
    if (!input.shape)
      throw UserError(fmt::format("{}: the input '{}' has no shape", name, input.name), "import_size",
                      "export the model with shapes; sizes may be names");
    ModelInput described{std::string(input.name), {}};
    for (const DimProto& dim : *input.shape) described.sizes.push_back(dim.value);
    inputs.push_back(std::move(described));
  }
  return inputs;
}

}  // namespace lathe::onnx
