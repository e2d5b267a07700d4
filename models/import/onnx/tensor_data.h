#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "ir/support/tensors/host_tensor.h"
#include "models/import/onnx/onnx_model.h"
#include "models/import/stored/mapped_tensor.h"

namespace lathe::onnx {

/// Returns the dtype of an element type of the format. Throws UserError [import_dtype] for types that Lathe does not
/// have, such as FLOAT8E4M3FN and STRING; `owner` is named in the error: "model.onnx: the tensor 'w'".
DType dtype_of(std::int64_t element_type, const std::string& owner);

/// Returns the name of an element type: "FLOAT"; "element type 99" for unknown numbers.
std::string element_name(std::int64_t element_type);

/// The tensors of a model: those in its own file, and those in files next to it.
class TensorData {
 public:
  /// `model` is the mapped file `path`.
  TensorData(std::filesystem::path path, std::shared_ptr<const MappedFile> model);

  /// Returns the elements of a tensor. They stay in the mapped file if they are aligned there, and are copied
  /// otherwise. Throws UserErrors [import_file] for data that do not fit the shape, [import_external] for a location
  /// outside of the model's folder or bytes outside of its file, and [import_dtype].
  HostTensor read(const TensorProto& tensor);

 private:
  HostTensor external(const TensorProto& tensor, DType dtype, const std::vector<std::int64_t>& shape);
  std::string owner(const TensorProto& tensor) const;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> model_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace lathe::onnx
