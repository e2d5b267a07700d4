#include "tools/inputs/tensor_file.h"

namespace lathe::tools {

namespace {

bool is_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

}  // namespace

TensorFile TensorFile::open(const std::filesystem::path& path) {
  return TensorFile(is_npz(path) ? Content(NpzFile::open(path)) : Content(SafetensorsFile::open(path)));
}

bool TensorFile::contains(std::string_view name) const {
  return std::visit([&](const auto& file) { return file.contains(name); }, content_);
}

HostTensor TensorFile::tensor(std::string_view name) const {
  return std::visit([&](const auto& file) { return file.tensor(name); }, content_);
}

void write_tensors(const std::filesystem::path& path, const Tensors& tensors) {
  if (is_npz(path))
    write_npz(path, tensors);
  else
    write_safetensors(path, tensors);
}

}  // namespace lathe::tools
