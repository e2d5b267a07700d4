#include "runtime/files/write/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "ir/support/error.h"

namespace lathe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_end = ".lathe-tmp", digits = "0123456789";

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// Returns ".model.safetensors.", the prefix of temporary files for a path; truncated because file systems limit
/// names.
std::string neighbour_prefix(const fs::path& path) { return "." + path.filename().string().substr(0, 200) + "."; }

/// Returns whether the name is the prefix and a suffix as in ".model.safetensors.4711-0.lathe-tmp", written by
/// process 4711.
bool is_neighbour(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(temporary_end) ||
      name.size() < prefix.size() + temporary_end.size())
    return false;
  const std::string_view middle = name.substr(prefix.size(), name.size() - prefix.size() - temporary_end.size());
  const auto dash = middle.find('-');
  const auto number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
  };
  return dash != std::string_view::npos && number(middle.substr(0, dash)) && number(middle.substr(dash + 1));
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool takes_standard_output(const struct stat& status) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat other{};
    if (::fstat(stream, &other) == 0 && same_file(status, other)) return true;
  }
  return false;
}

/// Removes the selected files of a folder unless a process is writing them.
template <class IsChosen>
void remove_unlocked(const fs::path& folder, const IsChosen& is_chosen) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator item(folder, ignored), end; !ignored && item != end; item.increment(ignored))
    if (is_chosen(item->path().filename().string())) found.push_back(item->path());
  for (const fs::path& each : found) {
    const FileDescriptor file(::open(each.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    if (file.is_open() && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      ::unlink(each.c_str());
  }
}

/// Follows symbolic links and returns the path at which a new file would be created. Returns an empty path with errno
/// set if the links form a cycle or cannot be read.
fs::path end_of_links(fs::path path) {
  constexpr int most_links = 40;
  for (int i = 0; i < most_links; ++i) {
    std::error_code code;
    if (fs::symlink_status(path, code).type() != fs::file_type::symlink) return path;
    const fs::path next = fs::read_symlink(path, code);
    if (code) return errno = code.value(), fs::path();
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  errno = ELOOP;
  return {};
}

}  // namespace

AtomicFile::AtomicFile(fs::path path, std::function<void()> before_in_place)
    : path_(std::move(path)), before_in_place_(std::move(before_in_place)) {
  struct stat status{};
  if (::stat(path_.c_str(), &status) == 0) {
    open_existing(status);
    return;
  }
  if (errno != ENOENT) fail("create");
  target_ = end_of_links(path_);
  if (target_.empty() || !target_.has_filename()) {
    if (!target_.empty()) errno = EISDIR;
    fail("create");
  }
  if (!create_neighbour(0666)) fail("create");
}

void AtomicFile::open_existing(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail("write");
  }
  if (!S_ISREG(status.st_mode)) return open_in_place(0);
  // A rename does not need write permission for the file itself, which its owner may have removed.
  if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail("write");
  std::error_code code;
  struct stat found{};
  target_ = fs::canonical(path_, code);
  const bool known = !code && ::lstat(target_.c_str(), &found) == 0 && same_file(status, found);
  if (!known || status.st_nlink != 1 || takes_standard_output(status)) return open_in_place(O_TRUNC);
  if (!create_neighbour(0600)) {
    if (errno != EACCES && errno != EPERM) fail("create");
    return open_in_place(O_TRUNC);
  }
  if (keep_owner(status)) return;
  discard();
  open_in_place(O_TRUNC);
}

bool AtomicFile::create_neighbour(mode_t mode) {
  remove_leftovers(target_);
  for (int attempt = 0;; ++attempt) {
    fs::path name =
        folder_of(target_) / fmt::format("{}{}-{}{}", neighbour_prefix(target_), ::getpid(), attempt, temporary_end);
    FileDescriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file.is_open()) {
      if (errno == EEXIST) continue;
      return false;
    }
    // Another process may remove the file as a leftover until it is locked.
    struct stat status{};
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (::fstat(file.get(), &status) != 0 || status.st_nlink == 0) continue;
    file_ = std::move(file);
    temporary_ = std::move(name);
    return true;
  }
}

bool AtomicFile::keep_owner(const struct stat& status) {
  struct stat own{};
  if (::fstat(file_.get(), &own) != 0) return false;
  const bool same = own.st_uid == status.st_uid && own.st_gid == status.st_gid;
  return (same || ::fchown(file_.get(), status.st_uid, status.st_gid) == 0) &&
         ::fchmod(file_.get(), status.st_mode & 0777) == 0;
}

void AtomicFile::open_in_place(int flags) {
  if (before_in_place_) before_in_place_();
  do file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | flags));
  while (!file_.is_open() && errno == EINTR);  // opening a pipe waits for its reader
  if (!file_.is_open()) fail("write");
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  file_.close();
}

void AtomicFile::fail(std::string_view action) const {
  throw UserError(fmt::format("cannot {} {}: {}", action, path_.string(), std::generic_category().message(errno)),
                  "file_write");
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.get(), bytes)) fail("write");
  hash_.update(bytes);
  size_ += bytes.size();
}

WrittenFile AtomicFile::prepare() {
  // fsync fails with EINVAL for pipes and similar files, which need no sync.
  if (::fsync(file_.get()) != 0 && (!temporary_.empty() || (errno != EINVAL && errno != EROFS && errno != ENOTSUP)))
    fail("sync");
  return {size_, hash_.finish()};
}

void AtomicFile::publish() {
  if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename to");
    temporary_.clear();
    sync_directory(folder_of(target_));
  }
  file_.close();
}

bool AtomicFile::is_temporary_name(std::string_view name) {
  const auto end = name.size() - std::min(name.size(), temporary_end.size());
  const auto dot = name.substr(0, end).rfind('.');
  return name.starts_with('.') && dot != std::string_view::npos && is_neighbour(name, name.substr(0, dot + 1));
}

void AtomicFile::remove_leftovers(const fs::path& path) {
  const std::string prefix = neighbour_prefix(path);
  remove_unlocked(folder_of(path), [&](const std::string& name) { return is_neighbour(name, prefix); });
}

void AtomicFile::remove_leftovers_in(const fs::path& folder) {
  remove_unlocked(folder, [](const std::string& name) { return is_temporary_name(name); });
}

}  // namespace lathe
