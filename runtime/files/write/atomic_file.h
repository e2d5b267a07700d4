#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "runtime/files/file_io.h"
#include "runtime/files/sha256.h"
#include "runtime/files/write/written_file.h"

struct stat;  // of <sys/stat.h>

namespace lathe {

/// Writes a file that appears at `path` only when it is complete. The bytes are written to a hidden temporary file in
/// the same folder. commit() makes them durable, renames the file and makes the rename durable. Without commit(),
/// nothing is left; a killed process's temporary file is removed by the next write of the same path. Throws UserError
/// [file_write].
///
/// The kind of file at `path` is kept: a symbolic link stays and its target is written; mode and owner of a file are
/// kept. Some files are written in place, so that a failure can leave a partial file: devices, pipes, and files that
/// a rename would change. The latter have several hard links or an owner that this process cannot set, are in a
/// folder without write permission, or are standard output or error.
class AtomicFile {
 public:
  /// Calls `before_in_place` before it writes the file at `path` in place.
  explicit AtomicFile(std::filesystem::path path, std::function<void()> before_in_place = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }

  /// Returns the path as given.
  const std::filesystem::path& path() const { return path_; }

  /// Returns whether a temporary file is written instead of the file at path().
  bool has_neighbour() const { return !temporary_.empty(); }

  /// Makes the bytes durable. write() must not be called after it.
  WrittenFile prepare();
  /// Renames the temporary file and makes the rename durable. Call prepare() first.
  void publish();
  WrittenFile commit() {
    const WrittenFile written = prepare();
    publish();
    return written;
  }

  /// Returns whether a name is that of a temporary file of any path.
  static bool is_temporary_name(std::string_view name);

  /// Removes temporary files for `path` that killed processes have left. Ignores failures.
  static void remove_leftovers(const std::filesystem::path& path);
  /// Does the same for all files of a folder.
  static void remove_leftovers_in(const std::filesystem::path& folder);

 private:
  [[noreturn]] void fail(std::string_view action) const;
  void open_existing(const struct stat& status);
  bool create_neighbour(unsigned mode);
  bool keep_owner(const struct stat& status);
  void open_in_place(int flags);
  void discard();

  std::filesystem::path path_;  ///< as given
  std::function<void()> before_in_place_;
  std::filesystem::path target_;     ///< after following symbolic links
  std::filesystem::path temporary_;  ///< empty: the target is written in place
  FileDescriptor file_;              ///< a temporary file is locked, so that it is not removed as a leftover
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

}  // namespace lathe
