#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/tensors/tensors.h"
#include "runtime/files/write/written_file.h"

namespace lathe {

class AtomicFile;

struct TensorInfo {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< offsets in the data after the header
};

/// A .safetensors file with strict checks and lazy reads: open() reads and checks only the header. Every fault throws
/// a UserError with the file, the tensor and the offending values:
///   [file_open]                does not exist, or is not a regular file
///   [safetensors_header_size]  shorter than its header says, or a header above 100,000,000 bytes
///   [safetensors_header_start] the header does not start with '{'
///   [safetensors_json]         not JSON
///   [safetensors_duplicate]    a repeated key
///   [safetensors_field]        a field is missing, unknown or of the wrong type
///   [safetensors_dtype]        a dtype that the format, or (on access) Lathe, does not have
///   [safetensors_limit]        rank > 32, a name > 4096 bytes, > 1,000,000 tensors
///   [safetensors_offsets]      begin > end, or end beyond the file
///   [safetensors_overlap], [safetensors_hole]  data that belongs to two tensors, or to none
///   [safetensors_overflow]     shape x dtype does not fit 63 bits
///   [safetensors_span]         shape x dtype differs from the data's size
///   [safetensors_missing]      no tensor with that name
///   [safetensors_read]         the file was truncated or cannot be read
///   [safetensors_bool]         a BOOL that is neither 0 nor 1
/// C128 is Lathe's extension of the format's dtypes.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  /// Returns the names in the order of their data.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// Throws UserError [safetensors_missing]; [safetensors_dtype] for a dtype that Lathe does not support, such as
  /// F8_E4M3.
  const TensorInfo& info(std::string_view name) const;
  HostTensor tensor(std::string_view name) const;
  /// Returns the tensor's bytes in the mapped file, with any alignment. They are valid as long as a copy of this
  /// object exists. The file must not be truncated while they are read; tensor() has no such condition.
  std::span<const std::byte> view(std::string_view name) const;
  /// Returns the tensor in place in the mapped file, under the conditions of view(). Writes go to private copies of
  /// the pages, which other calls may not see; the file is not changed. BOOL tensors and tensors that are not aligned
  /// to their element size are copied.
  HostTensor mapped(std::string_view name) const;
  /// Returns the strings of "__metadata__".
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Content;
  explicit SafetensorsFile(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
};

/// A tensor to write, with its data in place.
struct TensorView {
  std::string name;
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;
};
TensorView view_of(std::string name, const HostTensor& tensor);

/// Writes a file in the standard format, atomically and durably. Tensors with larger elements come first, so that all
/// data is aligned. Returns size and SHA-256. Throws UserError [file_write]; [safetensors_duplicate],
/// [safetensors_limit], [safetensors_field] for names that cannot be written.
WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {});
WrittenFile write_safetensors(const std::filesystem::path& path, const Tensors& tensors,
                              const std::map<std::string, std::string>& metadata = {});
/// Returns the header of a .safetensors file: the bytes before the data of its tensors. Tensors of equal element
/// sizes keep their order.
std::string safetensors_header(std::span<const TensorView> tensors);
/// Writes the content of a .safetensors file. The caller commits the file.
void write_safetensors(AtomicFile& file, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace lathe
