#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/cache/disk_cache.h"
#include "tests/support/kernels/kernel_folder.h"
#include "tests/support/programs/memory_store.h"

namespace lathe::test {

/// Compiled objects that all tests of a build share, because compiling takes most of a test's time and tests need the
/// same kernels. Stored in kernel_folder(); keys contain the emitter's digest, so objects of an older emitter are not
/// found.
class KernelStore final : public ObjectStore {
 public:
  std::optional<std::string> get(const std::string& key) override {
    if (auto found = memory_.get(key)) return found;
    return on_disk().get(key);
  }
  void put(const std::string& key, std::string_view bytes) override {
    memory_.put(key, bytes);
    on_disk().put(key, bytes);
  }

 private:
  static DiskCache& on_disk() {
    static DiskCache cache(kernel_folder());
    return cache;
  }

  MemoryStore memory_;
};

/// Returns the store of this process.
inline ObjectStore* shared_kernels() {
  static KernelStore store;
  return &store;
}

}  // namespace lathe::test
