#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/files/file_io.h"

namespace lathe {

/// A lock file held by one process until this object is destroyed or the process ends. The file is kept and contains
/// the process id of its last holder.
class FileLock {
 public:
  /// Creates the file if it is missing. Waits up to `timeout` for another holder; returns nullopt after that. Throws
  /// UserError [file_lock] if files cannot be locked there.
  static std::optional<FileLock> take(const std::filesystem::path& path, std::chrono::milliseconds timeout = {});

  /// Returns "process 4711", or "another process" if the file contains no process id.
  static std::string holder(const std::filesystem::path& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace lathe
