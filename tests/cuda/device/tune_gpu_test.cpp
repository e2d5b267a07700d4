#include <catch2/catch.hpp>
#include <set>

#include "ir/tensor/text/parser.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "tests/cuda/device/mock_gpu.h"
#include "tests/support/programs/memory_store.h"
#include "tests/support/tensors/compare_tensors.h"

/// Tile selection on a mock GPU, with a timer controlled by the test, and with the mock's events.
using namespace lathe;
using lathe::test::MockGpu;

namespace {

const DimBindings sizes{{"n", 70}};

/// One matmul by tensor cores, one in f32 arithmetic.
ir::Graph products() {
  return ir::parse_graph(R"(graph @g(input %x: bf16[48, 64], input %w: bf16[64, 96], input %a: f32[n, 40],
                                     input %b: f32[40, 130]) {
  %1 = contract %x, %w {spec="nk,km->nm"}
  %2 = relu %1
  %3 = contract %a, %b {spec="nk,km->nm"}
  %4 = relu %3
  output "narrow" %2
  output "wide" %4
})",
                         "products");
}

/// Returns a timer that reports candidate number `fast` as the fastest.
LaunchTimer timer(int fast, int& calls) {
  return [fast, &calls](const Program& program, const std::vector<bool>& skipped) {
    ++calls;
    std::vector<double> seconds(program.launches.size());
    for (std::size_t l = 0; l < skipped.size(); ++l)
      if (!skipped[l]) seconds[l] = program.launches[l].candidate == fast ? 0.9 : 1;
    return seconds;
  };
}

std::vector<int> chosen(const Executable& executable) {
  std::vector<int> numbers;
  for (const Launch& launch : program_of(executable).launches) numbers.push_back(launch.candidate);
  return numbers;
}

}  // namespace

TEST_CASE("tune: GPU matmuls use the fastest tiles, cache them, and keep their bits") {
  const Tensors arguments = test::random_arguments(products(), sizes, 1);
  std::set<std::vector<int>> tried;
  Tensors expected;
  for (int fast = 0; fast < 3; ++fast) {
    MockGpu gpu;
    test::MemoryStore store;
    CompileOptions options = gpu.options();
    options.cache = &store;
    int calls = 0;
    options.tune = TuneOptions{.dims = sizes, .timer = timer(fast, calls)};
    Executable executable = compile(products(), options);
    CHECK(calls > 0);
    CHECK(executable.summary().tuned->products.size() == 2);
    tried.insert(chosen(executable));
    const Tensors found = executable.run(arguments);
    if (fast == 0) expected = found;
    for (const auto& [name, value] : expected) CHECK(found.at(name).same_bits(value));

    calls = 0;
    CHECK(chosen(compile(products(), options)) == chosen(executable));
    CHECK(calls == 0);  // found in the store
  }
  CHECK(tried.size() == 3);
}

TEST_CASE("tune: measured with GPU events, with one candidate of each matmul per run") {
  MockGpu gpu;
  CompileOptions options = gpu.options();
  options.tune = TuneOptions{.dims = sizes, .seconds = 0.2};
  Executable executable = compile(products(), options);
  CHECK(executable.summary().tuned->products.size() == 2);
  CHECK(chosen(executable).size() == 2);
  const Tensors arguments = test::random_arguments(products(), sizes, 1);
  std::vector<LaunchTime> times;
  executable.run_traced(arguments, times);
  CHECK(times.size() == 2);
  CHECK(gpu.driver().alive() > 0);
}
