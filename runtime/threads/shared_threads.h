#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/threads/thread_pool.h"

namespace lathe {

/// Thread pools of one size. A run takes an idle pool and gives it back, so executables that run in turn use the same
/// threads, and runs at the same time have a pool each: none waits for another.
class SharedThreads {
 public:
  /// Returns the pools of `threads` threads of this process, which all callers with this number share. They are
  /// destroyed with the last reference. Throws the UserErrors of ThreadPool.
  static std::shared_ptr<SharedThreads> of_process(int threads);
  /// Creates pools apart from those of the process. The first one starts at once.
  explicit SharedThreads(int threads);

  int size() const { return threads_; }  ///< of each pool
  /// Returns an idle pool, or a new one.
  std::unique_ptr<ThreadPool> take();
  void give_back(std::unique_ptr<ThreadPool> pool);

 private:
  const int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadPool>> idle_;
};

/// The threads of one executable: those of the process with this number, or its own. Not thread-safe: runs of an
/// executable are serialized.
class RunThreads {
 public:
  RunThreads(int threads, bool are_own);
  int size() const { return shared_->size(); }
  /// Returns a pool for the current run, which keeps it until end_run(). In the child of a fork(), where the threads
  /// of the parent do not exist, it starts new ones.
  ThreadPool& pool();
  void end_run() {
    if (pool_) shared_->give_back(std::move(pool_));
  }

 private:
  void replace_after_fork();

  bool are_own_;
  unsigned forks_;  ///< ThreadPool::forks() when shared_ was made
  std::shared_ptr<SharedThreads> shared_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace lathe
