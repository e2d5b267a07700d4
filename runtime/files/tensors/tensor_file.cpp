#include "runtime/files/tensors/tensor_file.h"

namespace lathe {

namespace {

bool is_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

}  // namespace

TensorFile TensorFile::open(const std::filesystem::path& path) {
  return TensorFile(is_npz(path) ? Content(NpzFile::open(path)) : Content(SafetensorsFile::open(path)));
}

std::vector<std::string> TensorFile::names() const {
  return std::visit([](const auto& file) -> std::vector<std::string> { return file.names(); }, content_);
}

bool TensorFile::contains(std::string_view name) const {
  return std::visit([&](const auto& file) { return file.contains(name); }, content_);
}

HostTensor TensorFile::tensor(std::string_view name) const {
  return std::visit([&](const auto& file) { return file.tensor(name); }, content_);
}

HostTensor TensorFile::mapped(std::string_view name) const {
  const auto* const safetensors = std::get_if<SafetensorsFile>(&content_);
  return safetensors ? safetensors->mapped(name) : tensor(name);
}

void write_tensors(const std::filesystem::path& path, const Tensors& tensors) {
  if (is_npz(path))
    write_npz(path, tensors);
  else
    write_safetensors(path, tensors);
}

}  // namespace lathe
