#pragma once

#include <unistd.h>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/kernels/kernel_folder.h"
#include "tests/support/programs/small_program.h"

/// Runs the lathe command like a user.
namespace lathe::test {

/// Where commands cache compiled code: in the cache shared by all tests of the build, or in the test's own folder.
enum class Cache { shared, own };

/// A fresh folder for each test, removed afterwards.
class Scratch {
 public:
  explicit Scratch(Cache cache = Cache::shared) : cache_(cache) {
    std::string name = (std::filesystem::temp_directory_path() / "lathe-tools-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string cache() const {
    if (cache_ == Cache::own) return path("cache");
    return kernel_folder().string();
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  Cache cache_;
  std::filesystem::path folder_;
};

struct Ran {
  int status;  ///< exit status; -1 if it was killed by a signal
  std::string out, err;
};

/// Runs `lathe <arguments>` in a shell, in the scratch folder.
inline Ran run_lathe(const Scratch& scratch, const std::string& arguments) {
  const std::string command = "cd '" + scratch.path("") + "' && LATHE_CACHE_DIR='" + scratch.cache() +
                              "' '" LATHE_BINARY "' " + arguments + " > '" + scratch.path("stdout") + "' 2> '" +
                              scratch.path("stderr") + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, scratch.read("stdout"), scratch.read("stderr")};
}

}  // namespace lathe::test
