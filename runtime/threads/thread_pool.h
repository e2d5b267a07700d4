#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "ir/machine/memory_units.h"
#include "runtime/threads/function_ref.h"

namespace lathe {

/// Threads that run the chunks of a range. The chunks are [0, grain), [grain, 2 * grain), ... up to count: they
/// depend on count and grain alone, so what is computed chunk by chunk is the same for any number of threads. Each
/// thread has a share of them, a contiguous run that is the same in every call of this count and grain, so that what
/// it wrote in one call is in its caches in the next; one that is done with its share takes chunks from the ends of
/// others'. An idle thread spins for some microseconds, then sleeps.
class ThreadPool {
 public:
  /// `threads` counts the calling thread too. UserError [thread_count] outside 1..1024, [thread_start] if the system
  /// gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end), or body(begin, end, thread), for every chunk and returns when all are done; the caller
  /// works too. `thread` is in [0, size()): chunks of one call that run at the same time have different ones. grain
  /// < 1 counts as 1, one that would make 2^31 chunks or more as the least that does not. What a chunk throws is
  /// thrown here, that of the lowest chunk if several throw; chunks above it may then be left out. A call from inside
  /// a chunk of several runs on its thread, chunk by chunk, as thread 0. Several threads may call; their calls take
  /// turns.
  template <class Body>
  void run(std::int64_t count, std::int64_t grain, Body&& body) {
    if constexpr (std::is_invocable_v<Body&, std::int64_t, std::int64_t, int>)
      run_chunks(count, grain, body);
    else
      run_chunks(count, grain, [&body](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
  }

 private:
  using Body = FunctionRef<void(std::int64_t begin, std::int64_t end, int thread)>;

  void run_chunks(std::int64_t count, std::int64_t grain, Body body);
  void work(int thread);
  std::int64_t claim(int thread);
  void run_chunk(std::int64_t chunk, int thread);
  void worker_main(int thread);
  void wake_workers(std::int64_t chunks);
  void wait_until_done();
  void stop();

  struct Job {
    std::int64_t count = 0, grain = 1, chunks = 0;
    const Body* body = nullptr;
  };

  /// The chunks of a thread's share that nobody claimed yet: from the low half of the word up to the high half. Its
  /// owner claims the first, others the last. Two lines apart, since processors fetch lines in pairs.
  struct alignas(2 * cache_line_bytes) Share {
    std::atomic<std::uint64_t> unclaimed = 0;
  };

  // Only who claimed a chunk may look at job_, which stays as it is until unfinished_ is 0.
  Job job_;
  std::vector<Share> shares_;  ///< by thread
  alignas(cache_line_bytes) std::atomic<std::int64_t> unfinished_ = 0;
  alignas(cache_line_bytes) std::atomic<std::uint32_t> call_ = 0;  ///< counts calls; workers sleep on it
  std::atomic<std::int32_t> sleeping_ = 0;
  std::atomic<std::uint32_t> done_ = 0;  ///< counts finished calls; the caller sleeps on it
  std::atomic<bool> caller_sleeps_ = false;
  std::atomic<bool> stopping_ = false;

  std::atomic<std::int64_t> failed_chunk_;  ///< the lowest so far
  std::exception_ptr failure_;              ///< of failed_chunk_, under failure_mutex_
  std::mutex failure_mutex_;

  std::mutex callers_;
  int spins_ = 0;  ///< before sleeping; none if the threads outnumber the CPUs
  std::vector<std::thread> workers_;
};

}  // namespace lathe
