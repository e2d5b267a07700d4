#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/folder_save.h"
#include "runtime/files/safetensors.h"

namespace lathe {

/// The tensors of a model directory: one model.safetensors, or the files that model.safetensors.index.json names.
/// UserErrors: those of require_model_folder(); [model_folder] for a folder that has neither, or a model.safetensors
/// that the index does not name; [model_index] for an index that is not what it should be (no JSON object, a file
/// name that leaves the folder, a tensor that its file lacks or that is in two files or in none), [json], and those
/// of SafetensorsFile. Nothing but .safetensors files is ever read.
class TensorFolder {
 public:
  static TensorFolder open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return folder_; }
  /// All tensors, sorted by name.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return file_of_.contains(name); }
  /// The name of the file that holds a tensor.
  const std::string& file_of(std::string_view name) const;
  const TensorInfo& info(std::string_view name) const { return file(name).info(name); }
  /// The file that holds a tensor.
  const SafetensorsFile& file(std::string_view name) const { return files_.at(file_of(name)); }
  /// Where it lies in the mapped file: SafetensorsFile::mapped.
  HostTensor mapped(std::string_view name) const { return file(name).mapped(name); }
  /// Whether the tensors stand in several files by an index.
  bool is_sharded() const { return sharded_; }

 private:
  std::filesystem::path folder_;
  bool sharded_ = false;
  std::vector<std::string> names_;
  std::map<std::string, SafetensorsFile> files_;
  std::map<std::string, std::string, std::less<>> file_of_;
};

/// A tensor and the file of the folder that it belongs to.
struct PlacedTensor {
  std::string file;
  TensorView tensor;
};
/// UserError [model_folder] for a path where there is nothing or a file, and for a folder whose save was interrupted
/// (FolderSave::require_complete).
void require_model_folder(const std::filesystem::path& folder);

/// Adds the files to a save, and an index where there are several or one that is not model.safetensors. UserErrors of
/// write_safetensors, [file_write].
void add_tensor_files(FolderSave& save, const std::vector<PlacedTensor>& tensors);
/// The names of the files that add_tensor_files() adds for tensors in these files.
std::vector<std::string> files_written(const std::set<std::string>& tensor_files);
/// Saves tensors alone (FolderSave). UserErrors of FolderSave and add_tensor_files().
void write_tensor_folder(const std::filesystem::path& folder, const std::vector<PlacedTensor>& tensors);

/// The names of the existing files that a TensorFolder of this folder would read: model.safetensors, the index and
/// the files that it names.
std::vector<std::string> tensor_files_in(const std::filesystem::path& folder);

}  // namespace lathe
