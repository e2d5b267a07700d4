#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "runtime/cache/disk_cache.h"
#include "runtime/files/sha256.h"
#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

unsigned mode_of(const fs::path& path) {
  struct stat status{};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

fs::path entry_of(const DiskCache& cache, const std::string& key) { return cache.folder() / sha256_hex(key); }

void set_age(const fs::path& path, int seconds) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

int count_files(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("disk cache: default folder") {
  CHECK(default_cache_dir("/home/u", "") == "/home/u/.cache/lathe");
  CHECK(default_cache_dir("/home/u", "/x") == "/x/lathe");
  CHECK(default_cache_dir("/home/u", "relative") == "/home/u/.cache/lathe");
  CHECK(default_cache_dir("", "").empty());
  CHECK(default_cache_dir("u", "x").empty());
}

TEST_CASE("disk cache: stored entries are found by this process and the next") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "a" / "b" / "lathe";
  const std::string bytes("code\0with\xffzeros", 15);
  {
    DiskCache cache(folder);
    REQUIRE(cache.enabled());
    CHECK(cache.disabled_reason().empty());
    CHECK_FALSE(cache.get("key").has_value());
    cache.put("key", bytes);
    cache.put("empty", "");
    CHECK(cache.get("key") == bytes);
    CHECK(cache.get("empty") == "");
    cache.put("key", "newer");
    CHECK(cache.get("key") == "newer");
    CHECK(cache.stats().hits == 3);
    CHECK(cache.stats().misses == 1);
    CHECK(cache.stats().stored == 3);
    CHECK(mode_of(entry_of(cache, "key")) == 0600);
  }
  CHECK(mode_of(folder) == 0700);
  CHECK(mode_of(folder / "lathe-objects") == 0700);
  CHECK(mode_of(scratch / "a") == 0700);
  DiskCache cache(folder);
  CHECK(cache.get("key") == "newer");
  CHECK_FALSE(cache.get("../../etc/passwd").has_value());
  CHECK(count_files(cache.folder()) == 2);
  CHECK(count_files(folder) == 1);
}

TEST_CASE("disk cache: a damaged entry is removed, and reported as missing") {
  const ScratchFolder scratch;
  DiskCache cache(scratch / "c");
  cache.put("key", "some bytes of code");
  const fs::path entry = entry_of(cache, "key");
  const std::string good = slurp(entry);
  const auto expect_removed = [&] {
    CHECK_FALSE(cache.get("key").has_value());
    CHECK_FALSE(fs::exists(fs::symlink_status(entry)));
    CHECK(cache.stats().corrupt == 1);
  };
  SECTION("any flipped bit") {
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      spit(entry, bad);
      fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
      CHECK_FALSE(cache.get("key").has_value());
      CHECK_FALSE(fs::exists(entry));
    }
    CHECK(cache.stats().corrupt == static_cast<std::int64_t>(good.size()));
  }
  SECTION("any truncation") {
    for (std::size_t size = 0; size < good.size(); ++size) {
      spit(entry, good.substr(0, size));
      fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
      CHECK_FALSE(cache.get("key").has_value());
    }
  }
  SECTION("extra bytes at the end") {
    spit(entry, good + "x");
    expect_removed();
  }
  SECTION("the entry of another key") {
    fs::copy_file(entry, entry_of(cache, "other"));
    CHECK_FALSE(cache.get("other").has_value());
    CHECK(cache.get("key") == "some bytes of code");
  }
  SECTION("writable by other users") {
    fs::permissions(entry, fs::perms::group_write, fs::perm_options::add);
    expect_removed();
  }
  SECTION("a symbolic link") {
    fs::rename(entry, scratch / "elsewhere");
    fs::create_symlink(scratch / "elsewhere", entry);
    expect_removed();
    CHECK(fs::exists(scratch / "elsewhere"));
  }
  SECTION("a folder") {
    fs::remove(entry);
    fs::create_directory(entry);
    CHECK_FALSE(cache.get("key").has_value());
    cache.put("key", "x");
    CHECK(cache.stats().failed == 1);
    CHECK(count_files(cache.folder()) == 1);
  }
  cache.put("good", "g");
  CHECK(cache.get("good") == "g");
}

TEST_CASE("disk cache: an unsuitable folder disables the cache with a reason, and nothing throws") {
  const ScratchFolder scratch;
  fs::path folder = scratch / "c";
  std::string says;
  SECTION("no path") {
    folder.clear();
    says = "no cache folder";
  }
  SECTION("group-writable") {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::group_write, fs::perm_options::add);
    says = "others may write";
  }
  SECTION("world-writable") {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
    says = "others may write";
  }
  SECTION("a symbolic link") {
    fs::create_directory(scratch / "real");
    fs::create_directory_symlink(scratch / "real", folder);
    says = "link";
  }
  SECTION("a file") {
    spit(folder, "");
    says = "no folder";
  }
  SECTION("a path below a file") {
    spit(folder, "");
    folder /= "d";
    says = "cannot be created";
  }
  SECTION("parent folder writable by other users") {
    fs::create_directories(folder / "lathe-objects");
    fs::permissions(folder / "lathe-objects", fs::perms::others_write, fs::perm_options::add);
    says = "lathe-objects: others may write";
  }
  SECTION("parent folder is a symbolic link") {
    fs::create_directories(folder);
    fs::create_directory_symlink(scratch.path(), folder / "lathe-objects");
    says = "link";
  }
  SECTION("owned by another user") {
    if (::geteuid() == 0) {
      fs::create_directory(folder);
      REQUIRE(::chown(folder.c_str(), 12345, 12345) == 0);
    } else {
      folder = "/usr";
    }
    says = "belongs to user";
  }
  DiskCache cache(folder);
  CHECK_FALSE(cache.enabled());
  CHECK_THAT(cache.disabled_reason(), Contains(says));
  CHECK(cache.folder().empty() == folder.empty());
  cache.put("key", "bytes");
  CHECK_FALSE(cache.get("key").has_value());
}

TEST_CASE("disk cache: survives removal of its folder") {
  const ScratchFolder scratch;
  DiskCache cache(scratch / "c");
  cache.put("key", "bytes");
  fs::remove_all(scratch / "c");
  CHECK_FALSE(cache.get("key").has_value());
  cache.put("key", "bytes");
  CHECK(cache.stats().failed == 1);
}

TEST_CASE("disk cache: evicts the least recently used entry when full") {
  const ScratchFolder scratch;
  const std::string kilobyte(1000, 'x');
  {
    DiskCache cache(scratch / "c", 10500);  // room for ten entries of 1048 bytes
    for (int i = 0; i < 10; ++i) {
      cache.put(std::to_string(i), kilobyte);
      set_age(entry_of(cache, std::to_string(i)), 100 - i);
    }
    CHECK(cache.stats().evicted == 0);
    CHECK(cache.get("0") == kilobyte);  // now the most recently used
    spit(cache.folder() / ".new-1-1", "LATHEC1\nleft by a killed process");
    set_age(cache.folder() / ".new-1-1", 7200);
    cache.put("10", kilobyte);
    CHECK(cache.stats().evicted == 3);  // down to 7/8 of the limit
    for (const int gone : {1, 2, 3}) CHECK_FALSE(cache.get(std::to_string(gone)).has_value());
    for (const int kept : {0, 4, 9, 10}) CHECK(cache.get(std::to_string(kept)) == kilobyte);
    CHECK_FALSE(fs::exists(cache.folder() / ".new-1-1"));
    cache.put("huge", std::string(9000, 'x'));
    CHECK_FALSE(cache.get("huge").has_value());
  }
  DiskCache smaller(scratch / "c", 4200);
  smaller.put("one", kilobyte);
  CHECK(count_files(smaller.folder()) == 3);
  CHECK(smaller.get("one") == kilobyte);
}

TEST_CASE("disk cache: only its own files count towards the limit, and only those are removed") {
  const ScratchFolder scratch;
  const fs::path given = scratch / "home", own = given / "lathe-objects";
  const std::string digest(64, 'a'), much(5000, 'x');
  fs::create_directories(own);
  for (const fs::path& folder : {given, scratch.path()}) fs::permissions(folder, fs::perms::owner_all);
  fs::permissions(own, fs::perms::owner_all);
  // Files that are not the cache's: outside its folder, with other names in its folder, with its names but not its
  // header, and the reverse.
  const std::vector<fs::path> others = {
      given / "thesis.tex",      given / digest,    own / "notes.txt",       own / digest,
      own / ".new-notes",        own / ".new-17-4", own / (digest + ".bak"), own / ".new-1-2-3.c",
      own / std::string(64, 'A')};
  for (const fs::path& path : others) {
    spit(path, path.filename().string().size() > 64 ? "LATHEC1\n" + much : much);
    set_age(path, 100'000);
  }
  fs::create_directory(own / std::string(64, 'b'));
  fs::create_symlink(given / "thesis.tex", own / std::string(64, 'c'));
  DiskCache cache(given, 3500);  // room for three entries of 1048 bytes
  const std::string kilobyte(1000, 'x');
  for (int i = 0; i < 3; ++i) cache.put(std::to_string(i), kilobyte);
  CHECK(cache.stats().evicted == 0);
  for (int i = 0; i < 3; ++i) CHECK(cache.get(std::to_string(i)) == kilobyte);
  for (int i = 3; i < 9; ++i) cache.put(std::to_string(i), kilobyte);
  CHECK(cache.stats().evicted > 0);
  CHECK(cache.get("8") == kilobyte);
  for (const fs::path& path : others) {
    INFO(path);
    CHECK(fs::file_size(path) >= much.size());
  }
  CHECK(fs::is_directory(own / std::string(64, 'b')));
  CHECK(fs::is_symlink(own / std::string(64, 'c')));
}

TEST_CASE("disk cache: threads and processes share a folder") {
  const ScratchFolder scratch;
  const auto bytes_of = [](int i) { return std::string(static_cast<std::size_t>(100 + i), static_cast<char>(i)); };
  const auto hammer = [&](DiskCache& cache) {
    int wrong = 0;
    for (int round = 0; round < 150; ++round) {
      const int i = round % 20;
      if (const auto found = cache.get(std::to_string(i))) wrong += *found != bytes_of(i);
      cache.put(std::to_string(i), bytes_of(i));
    }
    return wrong + static_cast<int>(cache.stats().corrupt);
  };
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    DiskCache cache(scratch / "c", 2500);
    ::_exit(hammer(cache) == 0 ? 0 : 1);
  }
  std::atomic<int> wrong = 0;
  DiskCache cache(scratch / "c", 2500);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([&] { wrong += hammer(cache); });
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(wrong == 0);
  CHECK(cache.stats().evicted > 0);
}
