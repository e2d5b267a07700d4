#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/threads/shared_threads.h"
#include "tests/support/kernels/kernel_store.h"

/// Executables share the threads of the process: idle ones, so that no run waits for another.
using namespace lathe;

namespace {

/// The number of this process's worker threads.
int workers() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    count += std::getline(file, name) && name.starts_with("lathe-");
  }
  return count;
}

constexpr std::string_view product = R"(graph @product(input %x: f32[n, 256], parameter %w: f32[256, 256]) {
  %1 = contract %x, %w {spec="ab,cb->ac"}
  %2 = softmax %1 {dim=-1}
  output "y" %2
})";

HostTensor waves(std::vector<std::int64_t> shape) {
  HostTensor tensor(f32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, static_cast<double>(i * 37 % 101) / 100 - 0.5);
  return tensor;
}

Executable executable(bool own_threads = false) {
  Executable made =
      compile(ir::parse_graph(product), {.threads = 4, .own_threads = own_threads, .cache = test::shared_kernels()});
  made.parameters().set("w", waves({256, 256}));
  return made;
}

/// Runs `body` in a child process that ends without destructors, and returns whether it returned true. A child that
/// hangs is killed by its alarm.
template <class Body>
bool holds_in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("shared threads: executables in turn use one pool, and an executable with its own does not") {
  const int before = workers();
  const Tensors inputs{{"x", waves({200, 256})}};
  {
    std::vector<Executable> all;
    std::optional<HostTensor> first;
    for (int i = 0; i < 6; ++i) {
      all.push_back(executable());
      const HostTensor y = all.back().run(inputs).at("y");
      if (!first) first = y;
      CHECK(y.same_bits(*first));
    }
    CHECK(workers() - before == 3);
    Executable apart = executable(true);
    CHECK(apart.run(inputs).at("y").same_bits(*first));
    CHECK(workers() - before == 6);
  }
  CHECK(workers() == before);
}

TEST_CASE("shared threads: runs at the same time have a pool each, and keep their bits") {
  Executable one = executable(), other = executable();
  const Tensors inputs{{"x", waves({200, 256})}};
  const HostTensor expected = one.run(inputs).at("y");
  std::atomic<int> differ = 0;
  {
    std::vector<std::jthread> callers;
    for (Executable* each : {&one, &other, &one, &other})
      callers.emplace_back([&inputs, &expected, &differ, each] {
        for (int i = 0; i < 50; ++i) differ += !each->run(inputs).at("y").same_bits(expected);
      });
  }
  CHECK(differ == 0);
}

TEST_CASE("shared threads: a pool that is taken is not given to another") {
  const auto threads = SharedThreads::of_process(2);
  CHECK(SharedThreads::of_process(2) == threads);
  CHECK_FALSE(SharedThreads::of_process(3) == threads);
  std::unique_ptr<ThreadPool> a = threads->take(), b = threads->take();
  CHECK(a != b);
  ThreadPool* const latest = b.get();
  threads->give_back(std::move(a));
  threads->give_back(std::move(b));
  CHECK(threads->take().get() == latest);
}

TEST_CASE("shared threads: a child process runs, also while the parent's threads are busy") {
  Executable exe = executable(), busy = executable();
  const Tensors inputs{{"x", waves({200, 256})}};
  const HostTensor expected = exe.run(inputs).at("y");
  std::atomic<bool> ends = false;
  std::latch started(1);
  std::jthread runner([&] {
    busy.run(inputs);
    started.count_down();
    while (!ends) busy.run(inputs);
  });
  started.wait();
  for (int i = 0; i < 5; ++i) {
    CHECK(holds_in_child([&] {
      if (!exe.run(inputs).at("y").same_bits(expected)) return false;
      if (workers() != 3) return false;  // threads of its own, at once
      {
        const ThreadPool of_child(2);
      }
      Executable moved = std::move(exe);  // destroyed in the child: it joins its own threads alone
      return true;
    }));
  }
  ends = true;
}
