#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/files/npz/npz.h"
#include "runtime/files/safetensors/safetensors.h"

namespace lathe {

/// A file with tensors by name: .npz, or otherwise .safetensors.
class TensorFile {
 public:
  /// Throws the UserErrors of NpzFile and SafetensorsFile.
  static TensorFile open(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  HostTensor tensor(std::string_view name) const;
  /// Returns the tensor in place in a .safetensors file, under the conditions of SafetensorsFile::mapped(); a copy
  /// from an .npz file.
  HostTensor mapped(std::string_view name) const;

 private:
  using Content = std::variant<SafetensorsFile, NpzFile>;
  explicit TensorFile(Content content) : content_(std::move(content)) {}
  Content content_;
};

/// Writes tensors to a file: .npz, or otherwise .safetensors. Throws the UserErrors of write_npz() and
/// write_safetensors().
void write_tensors(const std::filesystem::path& path, const Tensors& tensors);

}  // namespace lathe
