#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"
#include "models/import/pt2/program/exported_program.h"
#include "runtime/files/zip/zip_archive.h"

namespace lathe::pt2 {

/// Returns the dtype of a number of the format's enum ScalarType. Throws UserError [import_dtype] for types that
/// Lathe does not have; `owner` is named in the error: "model.pt2: the tensor 'w'".
DType dtype_of(std::int64_t scalar_type, const std::string& owner);

/// The errors of archives with programs.
inline constexpr ZipErrors program_archive_errors{
    .damaged = "import_file",
    .unsupported = "import_unsupported",
    .origin = "the file is damaged, or torch.export.save() has not written it",
    .form = "torch.export.save() stores files as they are; write the archive again without compression"};

/// The tensors of a program, which are raw bytes in its archive: weights with the names of the state dict, and
/// constants.
class ProgramTensors {
 public:
  /// `root` is the folder of the archive: "model/"; `program` is the name of the program in it.
  ProgramTensors(const ZipArchive& archive, const std::string& root, const std::string& program);

  /// Returns a tensor. It stays in the mapped file if it is contiguous and aligned there, and is copied otherwise.
  /// Throws UserErrors [import_file] for a tensor that is missing or outside of its file, [import_unsupported] for
  /// one that is stored by pickle, and [import_dtype].
  HostTensor read(std::string_view name) const;

  /// Returns a text that is equal for two names of the same elements, such as tied weights.
  std::string place(std::string_view name) const;
  /// Returns the file of a tensor in the archive: tensors that share storage have one.
  const std::string& file(std::string_view name) const { return payload(name).entry; }
  /// Returns whether a parameter is trained: requires_grad was true.
  bool is_trained(std::string_view name) const { return payload(name).meta.requires_grad; }

 private:
  struct Payload {
    std::string entry;  ///< name in the archive
    bool is_pickled = false;
    TensorMeta meta = {};
  };
  void read_index(const std::string& folder, const std::string& index, const std::string& legacy);
  const Payload& payload(std::string_view name) const;
  std::string owner(std::string_view name) const;

  const ZipArchive& archive_;
  std::map<std::string, Payload, std::less<>> payloads_;
};

}  // namespace lathe::pt2
