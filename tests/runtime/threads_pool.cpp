#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/threads/thread_pool.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/no_threads.h"

using namespace lathe;
using namespace lathe::test;

namespace {
constexpr int thread_counts[] = {1, 2, 3, 7, 16};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
}  // namespace

TEST_CASE("thread pool: chunks follow count and grain, each run once, for any number of threads") {
  struct Range {
    std::int64_t count, grain;
  };
  for (const Range range : {Range{0, 4},
                            {-3, 4},
                            {1, 4},
                            {4, 4},
                            {5, 4},
                            {1000, 7},
                            {64, 1},
                            {10, 0},
                            {10, -5},
                            {10, INT64_MAX},
                            {INT64_MAX, INT64_MAX / 3}}) {
    std::map<std::int64_t, std::int64_t> expected;
    const std::int64_t grain = std::max<std::int64_t>(range.grain, 1);
    for (std::int64_t begin = 0; begin < range.count;) {
      const std::int64_t end = begin + std::min(grain, range.count - begin);
      expected[begin] = end;
      begin = end;
    }
    for (const int threads : thread_counts) {
      ThreadPool pool(threads);
      CHECK(pool.size() == threads);
      std::mutex mutex;
      std::map<std::int64_t, std::int64_t> seen;
      int calls = 0;
      pool.run(range.count, range.grain, [&](std::int64_t begin, std::int64_t end) {
        const std::lock_guard lock(mutex);
        seen[begin] = end;
        ++calls;
      });
      CHECK(seen == expected);
      CHECK(calls == static_cast<int>(expected.size()));
    }
  }
}

TEST_CASE("thread pool: writes of a call are visible when it returns, many times over") {
  for (const int threads : thread_counts) {
    ThreadPool pool(threads);
    std::vector<std::int64_t> values(257);  // plain memory: the pool orders all accesses
    for (std::int64_t round = 1; round <= 3000; ++round) {
      pool.run(257, 1 + round % 40, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i + round;
      });
    }
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < 257; ++i) wrong += values[static_cast<std::size_t>(i)] != 3000 * i + 3000 * 3001 / 2;
    CHECK(wrong == 0);
  }
}

TEST_CASE("thread pool: concurrent chunks have different thread numbers, and threads share the work") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<int> clashes = 0;
  std::mutex mutex;
  std::set<std::thread::id> used;
  for (int round = 0; round < 5; ++round)
    pool.run(40, 1, [&](std::int64_t, std::int64_t, int thread) {
      if (busy.at(static_cast<std::size_t>(thread)).fetch_add(1) != 0) ++clashes;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      {
        const std::lock_guard lock(mutex);
        used.insert(std::this_thread::get_id());
      }
      busy[static_cast<std::size_t>(thread)].fetch_sub(1);
    });
  CHECK(clashes == 0);
  CHECK(used.size() == 4);
}

TEST_CASE("thread pool: a thread starts with the same share in each call, and steals work when it is done") {
  constexpr int threads = 4, chunks = 43;
  ThreadPool pool(threads);
  for (int round = 0; round < 20; ++round) {
    // All threads wait until each has its first chunk; then all except one wait until the rest are done.
    std::vector<std::atomic<std::int64_t>> first(threads);
    for (auto& chunk : first) chunk = -1;
    std::atomic<int> arrived = 0, done = 0;
    pool.run(chunks, 1, [&](std::int64_t chunk, std::int64_t, int thread) {
      if (std::int64_t none = -1; first[static_cast<std::size_t>(thread)].compare_exchange_strong(none, chunk)) {
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
        while (thread != 2 && done < chunks - threads) std::this_thread::yield();
      } else {
        CHECK(thread == 2);
        ++done;
      }
    });
    for (int thread = 0; thread < threads; ++thread)
      CHECK(first[static_cast<std::size_t>(thread)] == chunks * thread / threads);
    CHECK(done == chunks - threads);
  }
}

TEST_CASE("thread pool: the exception of the lowest chunk reaches the caller, and the pool stays usable") {
  for (const int threads : thread_counts) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::string message;
      try {
        pool.run(100, 1, [&](std::int64_t begin, std::int64_t) {
          if (begin % 10 == 7) throw std::runtime_error(std::to_string(begin));
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      REQUIRE(message == "7");
      std::atomic<int> ran = 0;
      pool.run(10, 1, [&](std::int64_t, std::int64_t) { ++ran; });
      REQUIRE(ran == 10);
    }
  }
}

TEST_CASE("thread pool: a nested call runs on the calling thread") {
  for (const int threads : thread_counts) {
    ThreadPool pool(threads), other(2);
    std::atomic<int> inner = 0, moved = 0;
    pool.run(20, 1, [&](std::int64_t, std::int64_t) {
      const auto here = std::this_thread::get_id();
      const auto count = [&](std::int64_t, std::int64_t, int thread) {
        inner += 1;
        if (threads > 1) moved += std::this_thread::get_id() != here || thread != 0;
      };
      pool.run(10, 3, count);
      other.run(10, 3, count);
    });
    CHECK(inner == 20 * 8);
    CHECK(moved == 0);
  }
}

TEST_CASE("thread pool: concurrent callers take turns") {
  ThreadPool pool(3);
  std::atomic<std::int64_t> total = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&] {
        for (int round = 0; round < 300; ++round)
          pool.run(50, 4, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
      });
  }
  CHECK(total == 4 * 300 * 50);
}

TEST_CASE("thread pool: start, shutdown and invalid sizes") {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(1 + i % 8);
    if (i % 2) pool.run(8, 1, [](std::int64_t, std::int64_t) {});
  }
  CHECK(failure_of([] { ThreadPool(0); }).label == "thread_count");
  CHECK(failure_of([] { ThreadPool(-1); }).label == "thread_count");
  CHECK(failure_of([] { ThreadPool(100000); }).label == "thread_count");
}

TEST_CASE("thread pool: a thread that the system cannot start is an error by name") {
  const NoThreads no_threads;
  CHECK(failure_of([] { ThreadPool(2); }).label == "thread_start");
  ThreadPool alone(1);
  int runs = 0;
  alone.run(8, 1, [&](std::int64_t, std::int64_t) { ++runs; });
  CHECK(runs == 8);
}

TEST_CASE("thread pool: idle threads use no CPU") {
  for (const int threads : {2, 8}) {
    ThreadPool pool(threads);
    pool.run(64, 1, [](std::int64_t, std::int64_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(cpu_seconds() - before < 0.02);
  }
}
