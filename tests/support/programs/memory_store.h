#pragma once

#include <map>
#include <mutex>
#include <string>

#include "codegen/llvm/jit.h"

namespace lathe::test {

/// Compiled objects in memory, so that tests with many small graphs compile each kernel once.
class MemoryStore final : public ObjectStore {
 public:
  std::optional<std::string> get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto at = objects.find(key);
    return at == objects.end() ? std::nullopt : std::optional(at->second);
  }
  void put(const std::string& key, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    objects.insert_or_assign(key, std::string(bytes));
  }

  std::map<std::string, std::string> objects;  ///< by key

 private:
  std::mutex mutex_;
};

}  // namespace lathe::test
