#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/files/atomic_file.h"

namespace lathe {

/// A save of several files into a folder, such as the weights, the configuration and the tokenizer of a model, as one
/// transaction. All bytes go to hidden neighbours first, so a full disk or a kill leaves the folder as it was.
/// commit() renames the neighbours and removes the files of an earlier save that are not written again.
///
/// The folder's .lathe-save.json lists the files of the last save with their sizes and SHA-256. While files are
/// renamed it says "incomplete", and require_complete() refuses the folder. For other readers the files that are read
/// first (config.json, adapter_config.json, modules.json, *.index.json) are removed before that and renamed last, so
/// that no reader finds a mixture. Only files that are as this list says are ever removed.
class FolderSave {
 public:
  using Names = std::vector<std::string>;

  /// Creates the folder where it is missing. UserErrors [file_write], [model_folder] for a .lathe-save.json that is
  /// no such list, [file_lock] while another save into the folder is in progress.
  explicit FolderSave(std::filesystem::path folder);
  FolderSave(const FolderSave&) = delete;
  FolderSave& operator=(const FolderSave&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  /// A file to be filled before commit(). `name` is relative to the folder. A second file of one name replaces the
  /// first. UserError [file_write].
  AtomicFile& file(const std::string& name);
  void write(const std::string& name, std::string_view text) { file(name).write(text); }

  /// Publishes all files. `read`: files of the folder that would be read together with the new ones; each is written
  /// or removed. UserErrors: [output_folder] where such a file is not of an earlier save, before anything is changed;
  /// [file_write].
  void commit(const Names& read);

  /// Checks that a save of the files `written` could be committed, before any work is done. UserErrors
  /// [output_folder], [model_folder].
  static void check(const std::filesystem::path& folder, const Names& read, const Names& written);

  /// UserError [model_folder] for a folder whose last save was interrupted while it replaced files.
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
    std::vector<Entry> files;  ///< of an incomplete save: those before and after it
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
