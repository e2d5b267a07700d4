#include "ir/support/share_jobs.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "tests/support/kernels/no_threads.h"
#include "tests/support/programs/memory_store.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Records which threads compile.
class ThreadNotingStore final : public ObjectStore {
 public:
  std::optional<std::string> get(const std::string&) override { return std::nullopt; }
  void put(const std::string&, std::string_view) override {
    const std::lock_guard lock(mutex_);
    ++objects;
    threads.insert(std::this_thread::get_id());
  }

  std::set<std::thread::id> threads;
  int objects = 0;

 private:
  std::mutex mutex_;
};

/// Six different kernels.
ir::Graph products() {
  return ir::parse_graph(R"(graph @g(input %x: f32[n, 64], input %a: f32[64, 32], input %b: f32[32, 48],
                                     input %c: f32[48, 16], input %d: f32[16, 80], input %e: f32[80, 8]) {
  %1 = contract %x, %a {spec="ik,kj->ij"}
  %2 = contract %1, %b {spec="ik,kj->ij"}
  %3 = contract %2, %c {spec="ik,kj->ij"}
  %4 = contract %3, %d {spec="ik,kj->ij"}
  %5 = contract %4, %e {spec="ik,kj->ij"}
  output "y" %5
})");
}

}  // namespace

TEST_CASE("shared jobs: each runs once, on at most the requested number of threads") {
  for (const int threads : {-1, 0, 1, 2, 7})
    for (const std::size_t jobs : {0, 1, 5, 100}) {
      std::vector<std::atomic<int>> runs(jobs);
      std::atomic<int> workers = 0;
      share_jobs(jobs, threads, [&](const NextJob& next) {
        ++workers;
        while (const auto job = next()) ++runs[*job];
      });
      for (const auto& n : runs) CHECK(n == 1);
      CHECK(workers <= std::max(threads, 1));
      CHECK(workers <= static_cast<int>(jobs));
    }
}

TEST_CASE("shared jobs: the calling thread runs all jobs if the system cannot start threads") {
  const NoThreads no_threads;
  int runs = 0;
  share_jobs(10, 4, [&](const NextJob& next) {
    while (next()) ++runs;
  });
  CHECK(runs == 10);
}

TEST_CASE("shared jobs: an exception reaches the caller, and no job starts after it") {
  std::atomic<int> begun = 0;
  const auto fail = [&](const NextJob& next) {
    while (next()) {
      ++begun;
      throw std::runtime_error("no");
    }
  };
  CHECK_THROWS_AS(share_jobs(1000, 3, fail), std::runtime_error);
  CHECK(begun <= 3);
}

TEST_CASE("compilation uses at most the requested number of threads") {
  ThreadNotingStore store;
  compile(products(), {.threads = 1, .cache = &store});
  CHECK(store.objects >= 3);  // enough for a second thread
  CHECK(store.threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("compiling for threads that the system cannot start is an error by name, but one thread works") {
  const NoThreads no_threads;
  MemoryStore store;
  CHECK_THROWS_WITH(compile(products(), {.threads = 4, .cache = &store}), Catch::Contains("[thread_start]"));
  CHECK_NOTHROW(compile(products(), {.threads = 1, .cache = &store}));
}
