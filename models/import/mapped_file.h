#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {
class MappedPages;
}  // namespace lathe

namespace lathe::importing {

/// A file in memory, mapped in place. Writes stay private to the process. The file must not be truncated while it is
/// mapped.
class MappedFile {
 public:
  /// Throws UserError [file_open] if the file cannot be opened, and [safetensors_read] if it cannot be mapped.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The bytes of the file; empty for an empty file.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::unique_ptr<MappedPages> pages_;
  std::span<std::byte> bytes_;
};

/// Returns the number of elements of a shape in a file. Throws UserError [import_file] for a shape that no tensor
/// has; `owner` is named in the error: "model.onnx: the tensor 'w'".
std::uint64_t numel(const std::vector<std::int64_t>& shape, const std::string& owner);

/// Returns a tensor over bytes of a mapped file, or a copy if they are not aligned. Bytes of a bool other than 0 are
/// true. There must be as many bytes as the elements have.
HostTensor mapped_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes,
                         const std::shared_ptr<const MappedFile>& file);

}  // namespace lathe::importing
