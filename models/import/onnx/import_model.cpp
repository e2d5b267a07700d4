#include "models/import/onnx/import_model.h"

#include "models/import/onnx/model_importer.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

importing::ImportedGraph import_model(const std::filesystem::path& file, const importing::ImportOptions& options) {
  const auto mapped = MappedFile::open(file);
  const std::string name = file.filename().string();
  const ModelProto model = read_model(mapped->bytes(), name);
  const importing::OpTable ops = standard_ops();
  check_ops(model, ops, name);
  TensorData data(file, mapped);
  return ModelImporter(file, model, data, ops, options).import();
}

}  // namespace lathe::onnx
