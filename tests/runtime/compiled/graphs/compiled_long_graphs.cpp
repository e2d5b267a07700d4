#include <pthread.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <exception>
#include <functional>

#include <fmt/core.h>

#include "ir/tensor/text/parser.h"
#include "passes/program/program.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"

/// Chains of thousands of nodes compile with a small stack and compute correct results.
using namespace lathe;

namespace {

/// Runs the body on a thread with a stack of this size.
void on_stack_of(std::size_t bytes, const std::function<void()>& body) {
  struct Call {
    const std::function<void()>& body;
    std::exception_ptr failure = nullptr;
  } call{body};
  pthread_attr_t attributes{};
  REQUIRE(::pthread_attr_init(&attributes) == 0);
  REQUIRE(::pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    auto& c = *static_cast<Call*>(argument);
    try {
      c.body();
    } catch (...) {
      c.failure = std::current_exception();
    }
    return nullptr;
  };
  REQUIRE(::pthread_create(&thread, &attributes, run, &call) == 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (call.failure) std::rethrow_exception(call.failure);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t small_stack = std::size_t{8} << 20;  // stack frames are several times as large
#else
constexpr std::size_t small_stack = std::size_t{256} << 10;
#endif

/// -x + x - x + x ...: `ops` nodes, each of which reads the previous one.
std::string chain(int ops) {
  std::string text = "graph @chain(input %x: f32[n, 4]) {\n  %0 = neg %x\n";
  for (int i = 1; i < ops; ++i) text += fmt::format("  %{} = {} %{}, %x\n", i, i % 2 ? "add" : "sub", i - 1);
  return text + fmt::format("  output \"y\" %{}\n}}\n", ops - 1);
}

/// Each step subtracts its row's sum: `sums` reductions in a chain.
std::string row_sums(int sums) {
  std::string text = "graph @sums(input %x: f64[n, 4]) {\n  %0 = neg %x\n";
  for (int i = 0; i < sums; ++i)
    text += fmt::format("  %s{0} = sum %{0} {{dims=[1], keepdim=true}}\n  %{1} = sub %{0}, %s{0}\n", i, i + 1);
  return text + fmt::format("  output \"y\" %{}\n}}\n", sums);
}

}  // namespace

TEST_CASE("long graphs: ten thousand element-wise ops compile and run with a small stack") {
  const ir::Graph graph = ir::parse_graph(chain(10001));
  on_stack_of(small_stack, [&] {
    Executable exe = compile(graph, {.threads = 1});
    const HostTensor y = exe.run({{"x", HostTensor::from({1, 4}, {1, 2, 3, -4})}}).at("y");
    CHECK(y.get(0) == -1);
    CHECK(y.get(3) == 4);
  });
}

TEST_CASE("long graphs: a chain of row sums is split into kernels of bounded size, which are shared") {
  Executable exe = compile(ir::parse_graph(row_sums(300)), {.threads = 1});
  for (const kernel::Kernel& kernel : program_of(exe).kernels) CHECK(kernel.values.size() < 2000);
  const HostTensor y = exe.run({{"x", HostTensor::from({1, 4}, {1, 1, -1, -1}, f64)}}).at("y");
  CHECK(y.get(0) == -1);
  CHECK(y.get(3) == 1);
}
