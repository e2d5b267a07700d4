#include "runtime/files/file_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
namespace fs = std::filesystem;

TEST_CASE("file lock: one holder at a time, reported by process id") {
  const ScratchFolder folder;
  const fs::path path = folder / "lock";
  CHECK(FileLock::holder(path) == "another process");
  {
    const auto lock = FileLock::take(path);
    REQUIRE(lock.has_value());
    CHECK_FALSE(FileLock::take(path).has_value());
    CHECK_FALSE(FileLock::take(path, std::chrono::milliseconds(20)).has_value());
    CHECK(FileLock::holder(path) == "process " + std::to_string(::getpid()));
  }
  CHECK(FileLock::take(path).has_value());
}

TEST_CASE("file lock: released when its process is killed") {
  const ScratchFolder folder;
  const fs::path path = folder / "lock";
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto lock = FileLock::take(path);
    if (!lock || ::write(ends[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  CHECK_FALSE(FileLock::take(path).has_value());
  CHECK(FileLock::holder(path) == "process " + std::to_string(child));
  REQUIRE(::kill(child, SIGKILL) == 0);
  CHECK(FileLock::take(path, std::chrono::seconds(10)).has_value());
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  for (const int end : ends) ::close(end);
}

TEST_CASE("file lock: paths that cannot be locked are rejected") {
  const ScratchFolder folder;
  spit(folder / "target", "precious");
  fs::create_symlink(folder / "target", folder / "link");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const fs::path& path : {folder / "link", folder / "pipe", folder.path(), folder / "no" / "such"}) {
    INFO(path);
    CHECK(failure_of([&] { (void)FileLock::take(path); }).label == "file_lock");
  }
  CHECK(slurp(folder / "target") == "precious");
}
