#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "runtime/files/file_io.h"
#include "runtime/files/sha256.h"
#include "runtime/files/written_file.h"

struct stat;  // of <sys/stat.h>

namespace lathe {

/// A file that appears at `path` only when complete: bytes go to a hidden neighbour, commit() makes them durable,
/// renames the neighbour and makes the rename durable. Without commit() nothing is left; what a killed process left
/// goes when the same path is written again. UserError [file_write].
///
/// What stands at `path` stays what it is. A link stays, and its target is written; mode and owner of a file stay.
/// Bytes go straight into what is no regular file, such as a device or a pipe, and into a file that a rename would
/// not leave as it is: one with further names (hard links), of an owner that this process cannot give away to, in a
/// folder that takes no neighbour, or the one that standard output or error goes to. Then a failure can leave a part.
class AtomicFile {
 public:
  /// `before_in_place` is called before bytes go straight into the file at `path`.
  explicit AtomicFile(std::filesystem::path path, std::function<void()> before_in_place = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }

  /// The path as it was given.
  const std::filesystem::path& path() const { return path_; }

  /// Whether the bytes go to a neighbour, rather than straight into the file at path().
  bool has_neighbour() const { return !temporary_.empty(); }

  /// Makes the bytes durable. No write() may follow.
  WrittenFile prepare();
  /// Renames the neighbour, after prepare(), and makes the rename durable.
  void publish();
  WrittenFile commit() {
    const WrittenFile written = prepare();
    publish();
    return written;
  }

  /// Whether a file of this name may be a neighbour, of whatever path.
  static bool is_temporary_name(std::string_view name);

  /// Removes the neighbours that killed processes left when they wrote `path`. Failure does no harm.
  static void remove_leftovers(const std::filesystem::path& path);
  /// The same for all files of a folder.
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
  std::filesystem::path target_;     ///< at the end of links
  std::filesystem::path temporary_;  ///< empty: bytes go straight into the target
  FileDescriptor file_;              ///< locked while it is temporary, so that nobody takes it for a leftover
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

}  // namespace lathe
