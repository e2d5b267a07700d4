#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "ir/hardware/memory_units.h"
#include "runtime/threads/function_ref.h"

namespace lathe {

/// A pool of threads that run the chunks of a range: [0, grain), [grain, 2 * grain), ... up to count. Chunks depend
/// only on count and grain, so results that are computed per chunk do not depend on the number of threads. Each
/// thread has a contiguous share of the chunks, the same in every call with equal count and grain, so that data from
/// one call is in its caches in the next. A thread that has finished its share steals chunks from the ends of other
/// shares. An idle thread spins for some microseconds, then sleeps. In the child of a fork(), which has none of the
/// threads, calls run on the calling thread.
class ThreadPool {
 public:
  /// `threads` includes the calling thread. Throws UserError [thread_count] outside 1..1024, [thread_start] if the
  /// system cannot create the threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Returns the number of forks between the first process that made a pool and this one. A pool made at another
  /// count has no threads in this process.
  static unsigned forks();

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end), or body(begin, end, thread), for every chunk and returns when all are done. The caller
  /// runs chunks too. `thread` is in [0, size()) and differs between concurrent chunks of a call. A grain < 1 is
  /// treated as 1; a grain that would give 2^31 chunks or more is increased. Rethrows the exception of the lowest
  /// chunk that threw; chunks above it may be skipped. A call from inside a chunk of a call with several chunks runs
  /// on its thread, sequentially, as thread 0. Calls from several threads are serialized.
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

  /// The unclaimed chunks of a thread's share: from the low half of the word up to the high half. The owner claims
  /// the first, other threads the last. The alignment is two cache lines, because processors prefetch lines in pairs.
  struct alignas(2 * cache_line_bytes) Share {
    std::atomic<std::uint64_t> unclaimed = 0;
  };

  // Read job_ only after claiming a chunk; it does not change until unfinished_ is 0.
  Job job_;
  std::vector<Share> shares_;  ///< by thread
  alignas(cache_line_bytes) std::atomic<std::int64_t> unfinished_ = 0;
  alignas(cache_line_bytes) std::atomic<std::uint32_t> call_ = 0;  ///< number of calls; workers sleep on it
  std::atomic<std::int32_t> sleeping_ = 0;
  std::atomic<std::uint32_t> done_ = 0;  ///< number of finished calls; the caller sleeps on it
  std::atomic<bool> caller_sleeps_ = false;
  std::atomic<bool> stopping_ = false;

  std::atomic<std::int64_t> failed_chunk_;  ///< lowest so far
  std::exception_ptr failure_;              ///< exception of failed_chunk_; guarded by failure_mutex_
  std::mutex failure_mutex_;

  std::mutex callers_;
  const unsigned forks_;
  int spins_ = 0;  ///< spins before sleeping; 0 if there are more threads than CPUs
  std::vector<std::thread> workers_;
};

}  // namespace lathe
