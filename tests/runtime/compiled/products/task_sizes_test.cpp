#include <catch2/catch.hpp>

#include "codegen/llvm/jit.h"
#include "ir/kernel/build/builder.h"
#include "runtime/cpu/cpu_runner.h"
#include "runtime/run/launch_time.h"

/// The number of iterations of a parallel loop that a thread gets at a time depends on the task sizes.
using namespace lathe;

namespace {

constexpr std::int64_t iterations = 1000, work = 1000, bytes_of_iteration = 2000;

/// y[i] = x[i], with a given amount of work per iteration.
Program copies(bool through_memory) {
  kernel::Builder b("copies");
  const kernel::Buffer x = b.buffer("x", f32, kernel::Access::read), y = b.buffer("y", f32, kernel::Access::write);
  b.parallel_for(0, iterations, 1, [&](kernel::Value i) { b.store(y, i, b.load(x, i)); });
  Program program;
  program.name = "copies";
  program.kernels.push_back(b.finish());
  for (const auto kind : {ProgramBuffer::Kind::input, ProgramBuffer::Kind::output})
    program.buffers.push_back({.kind = kind,
                               .name = kind == ProgramBuffer::Kind::input ? "x" : "y",
                               .dtype = f32,
                               .elements = Dim(iterations),
                               .data = {},
                               .loc = {}});
  program.inputs = {{"x", f32, Shape({Dim(iterations)}), 0}};
  program.outputs = {{"y", f32, Shape({Dim(iterations)}), 1}};
  program.launches.resize(1);
  program.launches[0].kernel = 0;
  program.launches[0].buffers = {0, 1};
  program.launches[0].work = Dim(work);
  program.launches[0].bytes = Dim(through_memory ? iterations * bytes_of_iteration : 0);
  return program;
}

std::size_t chunks(const TaskSizes& tasks, bool through_memory = false) {
  const Program program = copies(through_memory);
  auto kernels = codegen::Jit({.target = codegen::TargetCpu::host(), .threads = 1}, nullptr).compile(program.kernels);
  const auto runner = make_cpu_runner(program, std::move(kernels), {.tasks = tasks});
  HostTensor x(f32, {iterations}), y(f32, {iterations});
  const std::byte* const input = x.data();
  std::byte* const output = y.data();
  std::vector<LaunchTime> times;
  runner->run({.dims = {}, .inputs = {&input, 1}, .states = {}, .outputs = {&output, 1}, .times = &times});
  REQUIRE(times.size() == 1);
  return times[0].ranges.size();
}

}  // namespace

TEST_CASE("chunks of a parallel loop follow the task sizes") {
  const TaskSizes usual;
  CHECK(chunks(usual) == 4);  // at most 2^18 / 1000 iterations, in a number of chunks that threads share evenly
  TaskSizes sizes = usual;
  sizes.least_chunk_work = iterations * work;
  CHECK(chunks(sizes) == 1);
  sizes.least_chunk_work = work;
  sizes.light_chunks = 20;
  CHECK(chunks(sizes) == 20);
  sizes.heavy_work = work;
  sizes.heavy_chunks = 100;
  CHECK(chunks(sizes) == 100);
  // Its memory accesses take longer than its arithmetic.
  CHECK(chunks(usual, true) == 16);
  sizes = usual;
  sizes.byte_work = 1;
  CHECK(chunks(sizes, true) == 8);
}
