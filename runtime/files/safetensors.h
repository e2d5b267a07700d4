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
#include "runtime/files/written_file.h"

namespace lathe {

class AtomicFile;

struct TensorInfo {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< bytes within the data, which follow the header
};

/// A .safetensors file, read strictly and lazily: opening reads and checks the header alone. Every fault is a
/// UserError that names the file, the tensor and the offending values:
///   [file_open]                not there, not a regular file
///   [safetensors_header_size]  shorter than its header says, or a header above 100,000,000 bytes
///   [safetensors_header_start] the header does not start with '{'
///   [safetensors_json]         not JSON
///   [safetensors_duplicate]    a key twice
///   [safetensors_field]        a field that is missing, unknown or of the wrong type
///   [safetensors_dtype]        a dtype that the format, or (when asked for) Lathe, does not have
///   [safetensors_limit]        rank > 32, a name > 4096 bytes, > 1,000,000 tensors
///   [safetensors_offsets]      begin > end, or end beyond the file
///   [safetensors_overlap], [safetensors_hole]  data that two tensors share, or that belongs to none
///   [safetensors_overflow]     shape x dtype does not fit 63 bits
///   [safetensors_span]         shape x dtype differs from the data's size
///   [safetensors_missing]      no tensor of that name
///   [safetensors_read]         the file shrank or cannot be read
///   [safetensors_bool]         a BOOL that is neither 0 nor 1
/// C128 is Lathe's own addition to the dtypes of the format.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  /// In the order of their data.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// UserError [safetensors_missing]; [safetensors_dtype] for a dtype of the format that Lathe lacks, such as U8.
  const TensorInfo& info(std::string_view name) const;
  HostTensor tensor(std::string_view name) const;
  /// The tensor's bytes in the mapped file, of any alignment. They live as long as some copy of this object, and may
  /// be read only while nobody shortens the file: tensor() has no such condition.
  std::span<const std::byte> view(std::string_view name) const;
  /// The tensor where it lies in the mapped file, under the condition of view(). It may be written to: pages that are
  /// written become the process's own, which other calls may not see, and the file stays as it is. A tensor that does
  /// not lie at a multiple of its element's size is copied, and so is a BOOL.
  HostTensor mapped(std::string_view name) const;
  /// The strings of "__metadata__".
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Content;
  explicit SafetensorsFile(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::shared_ptr<const Content> content_;
};

/// A tensor to be written, wherever it lies.
struct TensorView {
  std::string name;
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;
};
TensorView view_of(std::string name, const HostTensor& tensor);

/// Writes a file that other readers take too; it appears whole or not at all, and durable. Data of larger elements
/// comes first, so that all of it is aligned. Gives size and SHA-256. UserError [file_write];
/// [safetensors_duplicate], [safetensors_limit], [safetensors_field] for names that cannot be written.
WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata = {});
WrittenFile write_safetensors(const std::filesystem::path& path, const Tensors& tensors,
                              const std::map<std::string, std::string>& metadata = {});
/// Writes the bytes of a .safetensors file; the caller commits it.
void write_safetensors(AtomicFile& file, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace lathe
