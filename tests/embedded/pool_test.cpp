#include <lathe/aot/lathe_pool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace {

/// A loop whose calls are counted by index and by worker.
struct Counted {
  explicit Counted(std::int64_t count) : calls(static_cast<std::size_t>(count)), worker(calls.size(), -1) {}

  static void task(void* argument, std::int64_t i, std::int32_t worker) {
    auto& self = *static_cast<Counted*>(argument);
    if (self.busy[worker].exchange(true)) self.is_shared = true;
    ++self.calls[static_cast<std::size_t>(i)];
    self.worker[static_cast<std::size_t>(i)] = worker;
    self.busy[worker] = false;
  }

  void run(lathe_pool& pool) {
    pool.workers.parallel_for(pool.workers.context, static_cast<std::int64_t>(calls.size()), task, this);
  }

  std::vector<int> calls;  ///< plain: each index belongs to one thread
  std::vector<std::int32_t> worker;
  std::atomic<bool> busy[64] = {}, is_shared = false;
};

}  // namespace

TEST_CASE("pool: each index is called once, and no worker twice at a time", "[embedded]") {
  for (const int threads : {1, 2, 3, 7, 33}) {
    lathe_pool pool;
    REQUIRE(lathe_pool_start(&pool, threads) == 0);
    CHECK(pool.workers.count == threads);
    for (int round = 0; round < 300; ++round) {
      Counted loop((round * 37) % 200);
      if (round % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // threads sleep meanwhile
      loop.run(pool);
      CHECK(std::ranges::all_of(loop.calls, [](int calls) { return calls == 1; }));
      CHECK_FALSE(loop.is_shared);
      for (const std::int32_t worker : loop.worker) CHECK((worker >= 0 && worker < threads));
    }
    lathe_pool_stop(&pool);
    CHECK(pool.threads == nullptr);
  }
}

TEST_CASE("pool: threads have contiguous shares, and take over the rest of others", "[embedded]") {
  lathe_pool pool;
  REQUIRE(lathe_pool_start(&pool, 4) == 0);
  // The shares of 64 indexes start at 0, 16, 32, 48. Each thread's first call waits for those of all others.
  struct First {
    std::atomic<int> begun = 0;
    std::int64_t index[4] = {-1, -1, -1, -1};
    static void task(void* argument, std::int64_t i, std::int32_t worker) {
      auto& self = *static_cast<First*>(argument);
      if (self.index[worker] >= 0) return;
      self.index[worker] = i;
      ++self.begun;
      while (self.begun < 4) std::this_thread::yield();
    }
  };
  for (int round = 0; round < 20; ++round) {
    First first;
    lathe_pool_run(&pool, 64, First::task, &first);
    for (int t = 0; t < 4; ++t) CHECK(first.index[t] == 16 * t);
  }
  // One call of the first share waits until other threads have made all other calls.
  struct Waiting {
    std::atomic<int> made = 0;
    static void task(void* argument, std::int64_t i, std::int32_t) {
      auto& made = static_cast<Waiting*>(argument)->made;
      if (i == 0)
        while (made < 63) std::this_thread::yield();
      else
        ++made;
    }
  } waiting;
  lathe_pool_run(&pool, 64, Waiting::task, &waiting);
  CHECK(waiting.made == 63);
  lathe_pool_stop(&pool);
}

TEST_CASE("pool: nested loops, loops of other threads and of forked processes run on their callers", "[embedded]") {
  lathe_pool pool;
  REQUIRE(lathe_pool_start(&pool, 3) == 0);
  struct Nested {
    lathe_pool* pool;
    std::atomic<int> calls = 0;
    static void inner(void* argument, std::int64_t, std::int32_t worker) {
      static_cast<Nested*>(argument)->calls += worker == 0 ? 1 : 1000;
    }
    static void outer(void* argument, std::int64_t, std::int32_t) {
      lathe_pool_run(static_cast<Nested*>(argument)->pool, 10, inner, argument);
    }
  } nested{&pool};
  lathe_pool_run(&pool, 12, Nested::outer, &nested);
  CHECK(nested.calls == 120);

  std::vector<std::jthread> callers;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Counted loop(40);
        loop.run(pool);
        if (loop.is_shared || std::reduce(loop.calls.begin(), loop.calls.end()) != 40) ++wrong;
      }
    });
  callers.clear();
  CHECK(wrong == 0);

  const pid_t child = fork();
  if (child == 0) {
    Counted loop(40);
    loop.run(pool);
    lathe_pool_stop(&pool);
    _exit(std::reduce(loop.calls.begin(), loop.calls.end()) == 40 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  lathe_pool_stop(&pool);
}

TEST_CASE("pool: numbers of threads from 0 to 1024 are accepted", "[embedded]") {
  lathe_pool pool;
  CHECK(lathe_pool_start(&pool, -1) == EINVAL);
  CHECK(lathe_pool_start(&pool, 1025) == EINVAL);
  REQUIRE(lathe_pool_start(&pool, 0) == 0);
  CHECK(pool.workers.count == lathe_pool_cpus());
  lathe_pool_stop(&pool);
}
