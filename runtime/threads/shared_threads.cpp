#include "runtime/threads/shared_threads.h"

#include <map>
#include <utility>

namespace lathe {

namespace {

/// The pools of this process by their number of threads.
struct Registry {
  std::mutex mutex;
  std::map<int, std::weak_ptr<SharedThreads>> pools;
  unsigned forks = ThreadPool::forks();
};

/// Never destroyed, because static objects of a program may own executables. After a fork(), another thread of the
/// parent may have held the mutex, so the child makes a new registry.
std::atomic<Registry*> registry_of_process = nullptr;

Registry& registry() {
  Registry* found = registry_of_process.load();
  while (!found || found->forks != ThreadPool::forks()) {
    auto made = std::make_unique<Registry>();
    if (registry_of_process.compare_exchange_strong(found, made.get())) found = made.release();
  }
  return *found;
}

}  // namespace

std::shared_ptr<SharedThreads> SharedThreads::of_process(int threads) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<SharedThreads>& known = all.pools[threads];
  std::shared_ptr<SharedThreads> found = known.lock();
  if (!found) known = found = std::make_shared<SharedThreads>(threads);
  return found;
}

SharedThreads::SharedThreads(int threads) : threads_(threads) {
  idle_.push_back(std::make_unique<ThreadPool>(threads));
}

std::unique_ptr<ThreadPool> SharedThreads::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      // The pool of the latest run, whose caches are warm.
      std::unique_ptr<ThreadPool> pool = std::move(idle_.back());
      idle_.pop_back();
      return pool;
    }
  }
  return std::make_unique<ThreadPool>(threads_);
}

void SharedThreads::give_back(std::unique_ptr<ThreadPool> pool) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pool));
}

RunThreads::RunThreads(int threads, bool are_own)
    : are_own_(are_own),
      forks_(ThreadPool::forks()),
      shared_(are_own ? std::make_shared<SharedThreads>(threads) : SharedThreads::of_process(threads)) {}

ThreadPool& RunThreads::pool() {
  if (forks_ != ThreadPool::forks()) replace_after_fork();
  if (!pool_) pool_ = shared_->take();
  return *pool_;
}

void RunThreads::replace_after_fork() { *this = RunThreads(size(), are_own_); }

}  // namespace lathe
