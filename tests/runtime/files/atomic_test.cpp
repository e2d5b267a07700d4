#include "runtime/files/write/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

struct stat status_of(const fs::path& path) {
  struct stat status{};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

unsigned mode_of(const fs::path& path) { return status_of(path).st_mode & 07777; }

int count_files(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("atomic file: the file appears completely, and an abandoned write leaves nothing") {
  const ScratchFolder folder;
  const ::mode_t umask = ::umask(022);
  write_file(folder / "f", "old");
  ::umask(umask);
  CHECK(mode_of(folder / "f") == 0644);
  {
    AtomicFile file(folder / "f");
    file.write("new");
    CHECK(slurp(folder / "f") == "old");
  }
  CHECK(slurp(folder / "f") == "old");
  const ino_t before = status_of(folder / "f").st_ino;
  write_file(folder / "f", "new");
  CHECK(slurp(folder / "f") == "new");
  CHECK(status_of(folder / "f").st_ino != before);
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("atomic file: mode, owner and links are preserved") {
  const ScratchFolder folder;
  const fs::path real = folder / "real";
  spit(real, "a longer text that was there");
  SECTION("a private file stays private") {
    fs::permissions(real, fs::perms(0600));
    write_file(real, "new");
    CHECK(mode_of(real) == 0600);
  }
  SECTION("an executable file stays executable") {
    fs::permissions(real, fs::perms(0755));
    write_file(real, "new");
    CHECK(mode_of(real) == 0755);
  }
  SECTION("another owner is preserved") {
    if (::geteuid() != 0) {
      WARN("SKIP: needs root");
      return;
    }
    REQUIRE(::chown(real.c_str(), 12345, 54321) == 0);
    write_file(real, "new");
    CHECK(status_of(real).st_uid == 12345);
    CHECK(status_of(real).st_gid == 54321);
  }
  SECTION("a symbolic link, and a link to it, show the new text") {
    fs::create_directory(folder / "d");
    fs::create_symlink("../real", folder / "d" / "one");
    fs::create_symlink(folder / "d" / "one", folder / "two");
    write_file(folder / "two", "new");
    CHECK(fs::is_symlink(folder / "two"));
    CHECK(fs::is_symlink(folder / "d" / "one"));
  }
  SECTION("a dangling link creates its target") {
    fs::remove(real);
    fs::create_symlink("real", folder / "link");
    write_file(folder / "link", "new");
    CHECK(fs::is_symlink(folder / "link"));
  }
  SECTION("other hard links to the file show the new text") {
    fs::create_hard_link(real, folder / "other");
    write_file(real, "new");
    CHECK(slurp(folder / "other") == "new");
  }
  SECTION("the file behind standard output is not replaced") {
    const int file = ::open(real.c_str(), O_WRONLY | O_CLOEXEC), kept = ::dup(STDOUT_FILENO);
    const ino_t before = status_of(real).st_ino;
    ::dup2(file, STDOUT_FILENO);
    write_file("/dev/stdout", "new");
    ::dup2(kept, STDOUT_FILENO);
    ::close(file);
    ::close(kept);
    CHECK(status_of(real).st_ino == before);
  }
  CHECK(slurp(real) == "new");
  for (const auto& item : fs::recursive_directory_iterator(folder.path()))
    CHECK_THAT(item.path().string(), !Contains(".lathe-tmp"));
}

TEST_CASE("atomic file: a path that is not a regular file is written in place") {
  const ScratchFolder folder;
  SECTION("a device") {
    write_file("/dev/null", "text");
    CHECK(S_ISCHR(status_of("/dev/null").st_mode));
    if (::access("/dev/full", W_OK) == 0) {
      CHECK_THAT(failure_of([] { write_file("/dev/full", "text"); }).text, Contains("No space left"));
      CHECK(S_ISCHR(status_of("/dev/full").st_mode));
    }
  }
  SECTION("a named pipe") {
    const fs::path pipe = folder / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::string read;
    {
      std::jthread reader([&] { read = slurp(pipe); });
      write_file(pipe, "text");
    }
    CHECK(read == "text");
    CHECK(S_ISFIFO(status_of(pipe).st_mode));
  }
  SECTION("a folder is rejected") {
    CHECK_THAT(failure_of([&] { write_file(folder.path(), "text"); }).text, Contains("directory"));
    CHECK_THAT(failure_of([&] { write_file(folder.path() / "d" / "", "text"); }).text, Contains("cannot create"));
  }
  SECTION("a cycle of links is rejected") {
    fs::create_symlink("b", folder / "a");
    fs::create_symlink("a", folder / "b");
    CHECK(failure_of([&] { write_file(folder / "a", "text"); }).label == "file_write");
  }
}

TEST_CASE("atomic file: permissions of the file and its folder are respected") {
  const ScratchFolder folder;
  spit(folder / "open", "old");
  spit(folder / "closed", "old");
  fs::permissions(folder / "open", fs::perms(0666));
  fs::permissions(folder / "closed", fs::perms(0444));
  fs::permissions(folder.path(), fs::perms(0555));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Permissions do not restrict root.
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(100);
    const bool closed = failure_of([&] { write_file(folder / "closed", "new"); }).label == "file_write";
    const bool fresh = failure_of([&] { write_file(folder / "fresh", "new"); }).label == "file_write";
    const bool open = failure_of([&] { write_file(folder / "open", "new"); }).label == "no error";
    ::_exit((closed ? 0 : 1) + (fresh ? 0 : 2) + (open ? 0 : 4));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  fs::permissions(folder.path(), fs::perms(0700));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 100) {
    WARN("SKIP: no other user to be");
    return;
  }
  CHECK(status == 0);
  CHECK(slurp(folder / "closed") == "old");
  CHECK(slurp(folder / "open") == "new");
}

TEST_CASE("atomic file: temporary files of a killed process are removed by the next write, and nothing else") {
  const ScratchFolder folder;
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(folder / "f");
    file.write("half");
    if (::write(ends[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  REQUIRE(count_files(folder.path()) == 1);
  const fs::path temporary = fs::directory_iterator(folder.path())->path();
  write_file(folder / "f", "by another");
  CHECK(fs::exists(temporary));  // its writer is still running
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  for (const int end : ends) ::close(end);
  const std::vector<std::string> others = {".f.1-2-3.lathe-tmp", ".f.x-2.lathe-tmp", ".ff.1-2.lathe-tmp",
                                           ".f.lathe-tmp", ".f.1-2.lathe-tmp.bak"};
  for (const std::string& name : others) spit(folder / name, "not Lathe's");
  fs::create_symlink(folder / others[0], folder / ".f.3-4.lathe-tmp");
  write_file(folder / "f", "again");
  CHECK_FALSE(fs::exists(temporary));
  for (const std::string& name : others) CHECK(slurp(folder / name) == "not Lathe's");
  CHECK(count_files(folder.path()) == 7);
}

TEST_CASE("atomic file: a name of maximal length") {
  const ScratchFolder folder;
  const std::string name(250, 'n');
  write_file(folder / name, "text");
  CHECK(slurp(folder / name) == "text");
}
