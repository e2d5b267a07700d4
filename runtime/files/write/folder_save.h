#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/write/atomic_file.h"

namespace lathe {

/// Saves several files into a folder, such as the weights, the configuration and the tokenizer of a model, as a
/// transaction. All bytes are written to hidden temporary files first, so that a full disk or a kill leaves the
/// folder unchanged. commit() renames these files and removes the files of an earlier save that are not written
/// again.
///
/// The folder's .lathe-save.json lists the files of the last save with their sizes and SHA-256. While files are
/// renamed, it is marked as incomplete, and require_complete() rejects the folder. For other readers, the files that
/// are read first (config.json, adapter_config.json, modules.json, *.index.json) are removed before that and renamed
/// last, so that no reader finds a mixture. Only files that match this list are ever removed.
class FolderSave {
 public:
  using Names = std::vector<std::string>;

  /// Creates the folder if it is missing. Throws UserErrors [file_write], [model_folder] for an invalid
  /// .lathe-save.json, [file_lock] while another save into the folder is in progress.
  explicit FolderSave(std::filesystem::path folder);
  FolderSave(const FolderSave&) = delete;
  FolderSave& operator=(const FolderSave&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  /// Returns a file to be written before commit(). `name` is relative to the folder. A second file with the same name
  /// replaces the first. Throws UserError [file_write].
  AtomicFile& file(const std::string& name);
  void write(const std::string& name, std::string_view text) { file(name).write(text); }

  /// Publishes all files. `read` lists existing files that would be read together with the new ones; each must be
  /// overwritten or removed. Throws UserErrors: [output_folder] before any change if such a file does not belong to
  /// an earlier save; [file_write].
  void commit(const Names& read);

  /// Checks before any work that a save of the files `written` could be committed. Throws UserErrors [output_folder],
  /// [model_folder].
  static void check(const std::filesystem::path& folder, const Names& read, const Names& written);

  /// Throws UserError [model_folder] if the folder's last save was interrupted while it replaced files.
  static void require_complete(const std::filesystem::path& folder);

  static constexpr std::string_view record_name = ".lathe-save.json";

 private:
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0;
    std::string sha256;  ///< hexadecimal
  };
  struct Record {
    bool complete = true;
    std::vector<Entry> files;  ///< of an incomplete save: the files before and after it
  };
  static Record read_record(const std::filesystem::path& folder);
  static bool is_unchanged(const std::filesystem::path& folder, const Entry& entry);
  static Names files_to_remove(const std::filesystem::path& folder, const Record& record, const Names& read,
                               const Names& written);
  void write_record(const Record& record) const;
  void remove(const std::string& name) const;
  void replace_files(const Names& removed);
  Names names() const;

  std::filesystem::path folder_;
  FileDescriptor lock_;  ///< of the folder itself
  Record before_;
  std::map<std::string, std::unique_ptr<AtomicFile>> files_;
};

}  // namespace lathe
