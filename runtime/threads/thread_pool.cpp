#include "runtime/threads/thread_pool.h"

#include <fmt/core.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <system_error>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "runtime/host/host_cpu.h"

namespace lathe {

namespace {

constexpr std::int64_t no_chunk = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t max_chunks = std::numeric_limits<std::int32_t>::max();
constexpr int max_threads = 1024;
/// About 20 microseconds: longer than the gap between two kernels of a step, but too short to be noticed.
constexpr int spins_before_sleep = 1000;

/// Set while this thread runs a chunk of any pool.
thread_local bool inside_chunk = false;

class InsideChunk {
 public:
  InsideChunk() { inside_chunk = true; }
  ~InsideChunk() { inside_chunk = false; }
  InsideChunk(const InsideChunk&) = delete;
  InsideChunk& operator=(const InsideChunk&) = delete;
};

std::uint64_t chunk_range(std::int64_t begin, std::int64_t end) {
  return static_cast<std::uint64_t>(begin) | static_cast<std::uint64_t>(end) << 32;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

/// Blocks all signals while threads are created. They inherit the mask, so that signals are delivered to the caller's
/// threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

unsigned ThreadPool::forks() {
  static std::atomic<unsigned> count = 0;
  static const int handler = ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)handler;
  return count.load(std::memory_order_relaxed);
}

ThreadPool::ThreadPool(int threads) : failed_chunk_(no_chunk), forks_(forks()) {
  if (threads < 1 || threads > max_threads)
    throw UserError(fmt::format("{} threads are not between 1 and {}", threads, max_threads), "thread_count");
  spins_ = threads <= usable_cpus() ? spins_before_sleep : 0;
  shares_ = std::vector<Share>(static_cast<std::size_t>(threads));
  const BlockedSignals blocked;
  try {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread] { worker_main(thread); });
      ::pthread_setname_np(workers_.back().native_handle(), fmt::format("lathe-{}", thread).c_str());
    }
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size();
    stop();
    throw UserError(fmt::format("cannot start thread {} of {}: {}", started + 2, threads, error.what()),
                    "thread_start", "use fewer threads");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  if (forks_ != forks()) {
    // The threads are those of the parent process: there is nothing to join, and their handles cannot be destroyed.
    (void)new std::vector<std::thread>(std::move(workers_));
    return;
  }
  stopping_.store(true);
  call_.fetch_add(1);
  futex(call_, FUTEX_WAKE, INT_MAX);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::run_chunks(std::int64_t count, std::int64_t grain, Body body) {
  if (count <= 0) return;
  grain = std::clamp<std::int64_t>(grain, (count - 1) / max_chunks + 1, count);
  const std::int64_t chunks = (count - 1) / grain + 1;
  if (chunks == 1 || workers_.empty() || inside_chunk || forks_ != forks()) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      body(chunk * grain, chunk * grain + std::min(grain, count - chunk * grain), 0);
    return;
  }
  const std::lock_guard turn(callers_);
  job_ = {.count = count, .grain = grain, .chunks = chunks, .body = &body};
  failed_chunk_.store(no_chunk, std::memory_order_relaxed);
  unfinished_.store(chunks, std::memory_order_relaxed);
  const auto threads = static_cast<std::int64_t>(shares_.size());
  for (std::int64_t t = 0; t < threads; ++t)
    shares_[t].unclaimed.store(chunk_range(chunks * t / threads, chunks * (t + 1) / threads),
                               std::memory_order_release);
  call_.fetch_add(1);
  wake_workers(chunks);
  work(0);
  wait_until_done();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::wake_workers(std::int64_t chunks) {
  if (sleeping_.load() > 0)
    futex(call_, FUTEX_WAKE, static_cast<std::uint32_t>(std::min<std::int64_t>(chunks - 1, INT_MAX)));
}

void ThreadPool::work(int thread) {
  const InsideChunk mark;
  std::int64_t finished = 0;
  for (std::int64_t chunk = claim(thread); chunk != no_chunk; chunk = claim(thread)) {
    run_chunk(chunk, thread);
    ++finished;
  }
  if (finished == 0 || unfinished_.fetch_sub(finished) != finished) return;
  done_.fetch_add(1);
  if (caller_sleeps_.load()) futex(done_, FUTEX_WAKE, 1);
}

/// Claims the next chunk of the thread's own share, else the last chunk of another share. Returns no_chunk if there
/// are none.
std::int64_t ThreadPool::claim(int thread) {
  const std::size_t own = static_cast<std::size_t>(thread);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    std::atomic<std::uint64_t>& unclaimed = shares_[(own + i) % shares_.size()].unclaimed;
    std::uint64_t seen = unclaimed.load(std::memory_order_relaxed);
    while (true) {
      const std::int64_t begin = seen & 0xffffffff, end = seen >> 32;
      if (begin >= end) break;
      const std::uint64_t left = i == 0 ? chunk_range(begin + 1, end) : chunk_range(begin, end - 1);
      if (unclaimed.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_relaxed))
        return i == 0 ? begin : end - 1;
    }
  }
  return no_chunk;
}

void ThreadPool::run_chunk(std::int64_t chunk, int thread) {
  // Chunks below the lowest one that has thrown so far are never skipped, so that the lowest of all is found.
  if (chunk > failed_chunk_.load(std::memory_order_relaxed)) return;
  const std::int64_t begin = chunk * job_.grain;
  try {
    (*job_.body)(begin, begin + std::min(job_.grain, job_.count - begin), thread);
  } catch (...) {
    const std::lock_guard lock(failure_mutex_);
    if (chunk < failed_chunk_.load(std::memory_order_relaxed)) {
      failed_chunk_.store(chunk, std::memory_order_relaxed);
      failure_ = std::current_exception();
    }
  }
}

void ThreadPool::wait_until_done() {
  for (int i = 0; i < spins_; ++i) {
    if (unfinished_.load(std::memory_order_acquire) == 0) return;
    relax();
  }
  caller_sleeps_.store(true);
  while (true) {
    const std::uint32_t seen = done_.load();
    if (unfinished_.load() == 0) break;
    futex(done_, FUTEX_WAIT, seen);
  }
  caller_sleeps_.store(false);
}

void ThreadPool::worker_main(int thread) {
  const FloatEnvironment environment;
  std::uint32_t seen = 0;
  while (true) {
    for (int i = 0; i < spins_ && call_.load(std::memory_order_relaxed) == seen; ++i) relax();
    if (call_.load() == seen) {
      sleeping_.fetch_add(1);
      futex(call_, FUTEX_WAIT, seen);
      sleeping_.fetch_sub(1);
    }
    if (stopping_.load()) return;
    seen = call_.load();
    work(thread);
  }
}

}  // namespace lathe
