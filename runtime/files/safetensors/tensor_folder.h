#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/write/folder_save.h"

namespace lathe {

/// The tensors of a model directory: one model.safetensors, or the files in model.safetensors.index.json. Throws
/// UserErrors of require_model_folder(); [model_folder] for a folder that has neither, or a model.safetensors that is
/// not in the index; [model_index] for an invalid index (not a JSON object, a file name outside of the folder, a
/// tensor that is missing in its file, is in two files or in none); [json], and those of SafetensorsFile. Only
/// .safetensors files are read.
class TensorFolder {
 public:
  static TensorFolder open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return folder_; }
  /// Returns the names of all tensors, sorted.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return file_of_.contains(name); }
  /// Returns the name of the file that contains a tensor.
  const std::string& file_of(std::string_view name) const;
  const TensorInfo& info(std::string_view name) const { return file(name).info(name); }
  /// Returns the file that contains a tensor.
  const SafetensorsFile& file(std::string_view name) const { return files_.at(file_of(name)); }
  /// Returns SafetensorsFile::mapped of the tensor.
  HostTensor mapped(std::string_view name) const { return file(name).mapped(name); }
  /// Returns whether an index distributes the tensors over files.
  bool is_sharded() const { return sharded_; }

 private:
  std::filesystem::path folder_;
  bool sharded_ = false;
  std::vector<std::string> names_;
  std::map<std::string, SafetensorsFile> files_;
  std::map<std::string, std::string, std::less<>> file_of_;
};

/// A tensor and the name of its file in the folder.
struct PlacedTensor {
  std::string file;
  TensorView tensor;
};
/// Throws UserError [model_folder] if the path does not exist or is a file, or if the folder's last save was
/// interrupted (FolderSave::require_complete).
void require_model_folder(const std::filesystem::path& folder);

/// Adds the files to a save, and an index unless model.safetensors is the only file. Throws UserErrors of
/// write_safetensors, [file_write].
void add_tensor_files(FolderSave& save, const std::vector<PlacedTensor>& tensors);
/// Returns the names of the files that add_tensor_files() adds for tensors in these files.
std::vector<std::string> files_written(const std::set<std::string>& tensor_files);
/// Saves only tensors (FolderSave). Throws UserErrors of FolderSave and add_tensor_files().
void write_tensor_folder(const std::filesystem::path& folder, const std::vector<PlacedTensor>& tensors);

/// Returns the names of existing files that a TensorFolder of this folder would read: model.safetensors, the index
/// and its files.
std::vector<std::string> tensor_files_in(const std::filesystem::path& folder);

}  // namespace lathe
