#include "models/export/onnx/external_data.h"

namespace lathe::onnx {

namespace {

/// Tensors of fewer bytes stay in the model, as in files of the onnx package.
constexpr std::uint64_t least_bytes = 1024;
/// Tensors start at pages, so that runtimes can map them.
constexpr std::uint64_t alignment = 4096;

}  // namespace

ExternalData::ExternalData(GraphProto& graph, const std::string& location) {
  const Text where = texts_.emplace_back(location);
  std::uint64_t end = 0;
  for (TensorProto& tensor : graph.initializers) {
    if (!tensor.raw || tensor.raw->size() < least_bytes) continue;
    const std::uint64_t offset = (end + alignment - 1) / alignment * alignment;
    tensors_.emplace_back(offset, *tensor.raw);
    end = offset + tensor.raw->size();
    tensor.is_external = true;
    tensor.external = {{"location", where},
                       {"offset", texts_.emplace_back(std::to_string(offset))},
                       {"length", texts_.emplace_back(std::to_string(tensor.raw->size()))}};
    tensor.raw.reset();
  }
}

void ExternalData::write(AtomicFile& file) const {
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : tensors_) {
    file.write(std::string(offset - end, '\0'));
    file.write(bytes);
    end = offset + bytes.size();
  }
}

}  // namespace lathe::onnx
