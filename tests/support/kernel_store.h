#pragma once

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "tests/support/memory_store.h"

namespace lathe::test {

/// Compiled objects that all tests of a build share: most of a test's time is making them, and many tests need the
/// same. They lie in a folder beside the tests; keys hold the emitter's digest, so that what an older one made is not
/// found.
class KernelStore final : public ObjectStore {
 public:
  std::optional<std::string> get(const std::string& key) override {
    if (auto found = memory_.get(key)) return found;
    std::ifstream file(folder() / key, std::ios::binary);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void put(const std::string& key, std::string_view bytes) override {
    memory_.put(key, bytes);
    static std::atomic<int> count = 0;
    const auto written = folder() / (key + "." + std::to_string(getpid()) + "." + std::to_string(count++));
    std::ofstream(written, std::ios::binary) << bytes;
    std::error_code failed;
    std::filesystem::rename(written, folder() / key, failed);
  }

 private:
  static const std::filesystem::path& folder() {
    static const std::filesystem::path folder = [] {
      const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kernels";
      std::filesystem::create_directories(path);
      return path;
    }();
    return folder;
  }

  MemoryStore memory_;
};

/// The one of this process.
inline ObjectStore* shared_kernels() {
  static KernelStore store;
  return &store;
}

}  // namespace lathe::test
