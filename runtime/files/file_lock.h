#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/files/file_io.h"

namespace lathe {

/// A file that one process holds at a time: until this object goes, or the process dies in whatever way. The file
/// stays and names its last holder.
class FileLock {
 public:
  /// Creates the file where it is missing, and waits at most `patience` while somebody else holds it: then nothing.
  /// UserError [file_lock] where no file can be locked there.
  static std::optional<FileLock> take(const std::filesystem::path& path, std::chrono::milliseconds patience = {});

  /// "process 4711", or "another process" where the file does not tell.
  static std::string holder(const std::filesystem::path& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace lathe
