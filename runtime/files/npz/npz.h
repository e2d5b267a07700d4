#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "runtime/files/write/written_file.h"

namespace lathe {

class ZipArchive;

/// A file of numpy.savez() or savez_compressed(): arrays by name in a zip file. Errors are UserErrors with the file
/// and the array:
///   [file_open]    does not exist, or is not a regular file
///   [npz_archive]  is no zip file, is damaged, or has a file that is no array
///   [npz_form]     has a file that is encrypted, or compressed by another method than deflate
///   [npz_header]   an array has a damaged header
///   [npz_dtype]    an array has elements that Lathe does not have
///   [npz_size]     the elements of an array are not as many as its shape has
///   [npz_bool]     a bool is neither 0 nor 1
class NpzFile {
 public:
  /// Reads the directory of the file.
  static NpzFile open(const std::filesystem::path& path);

  /// Returns the names of the arrays, in their order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// Returns an array, in row-major order. Throws [npz_archive] if there is none with this name.
  HostTensor tensor(std::string_view name) const;

 private:
  explicit NpzFile(std::shared_ptr<const ZipArchive> archive) : archive_(std::move(archive)) {}
  std::shared_ptr<const ZipArchive> archive_;
};

/// Writes a file that numpy.load() reads, without compression, atomically and durably. Equal tensors give equal
/// bytes. Throws UserErrors [file_write]; [npz_dtype] for bf16, which NumPy does not have; [npz_name] for a name of
/// 2^16 bytes or more.
WrittenFile write_npz(const std::filesystem::path& path, const Tensors& tensors);

}  // namespace lathe
