#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/support/kernels/kernel_store.h"

namespace lathe::test {

/// Compiled objects for several ranks that are threads of this process. The first rank that requests a kernel
/// compiles it; the others wait for the result.
class OnceStore final : public ObjectStore {
 public:
  std::optional<std::string> get(const std::string& key) override {
    std::unique_lock lock(mutex_);
    const auto [entry, is_first] = entries_.try_emplace(key, Entry{std::this_thread::get_id(), {}});
    if (is_first) entry->second.object = kernels_.get(key);
    if (entry->second.object || entry->second.asked_by == std::this_thread::get_id()) return entry->second.object;
    // The thread that was to compile it may have failed.
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return entry->second.object.has_value(); });
    return entry->second.object;
  }
  void put(const std::string& key, std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    kernels_.put(key, bytes);
    entries_.try_emplace(key, Entry{}).first->second.object = std::string(bytes);
    changed_.notify_all();
  }

 private:
  struct Entry {
    std::thread::id asked_by;
    std::optional<std::string> object;
  };
  KernelStore kernels_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;
};

}  // namespace lathe::test
