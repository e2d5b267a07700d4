#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "ir/hardware/gpu_info.h"
#include "passes/program/text/parse_program.h"
#include "runtime/backend/run_program.h"
#include "tests/cuda/device/mock_gpu.h"
#include "tests/support/programs/loop_programs.h"

/// Programs with loops on a mock GPU.
using namespace lathe;
using lathe::test::MockGpu;
using lathe::test::with;

namespace {

/// Returns the recurrence with GPU kernels: a thread computes 4 elements, as one vector.
std::string on_gpu(std::string_view text) {
  std::string result = with(text, "  for i0 in 0..n step 1 @parallel {\n",
                            "  for i0 in 0..n step 4 @block.x {\n    for i1 in 0..1 step 1 @thread.x {\n");
  result = with(with(result, " : f32\n", " : f32x4\n"), "0.5:f32 ", "0.5:f32x4 ");
  return with(result, "  }\n}\n", "  }\n  }\n}\n");
}

/// The same with rows of x at a distance of m elements.
std::string with_distance(const std::string& text) {
  return with(with(with(text, "input x: f32[T, n]", "input x: f32[T, m]"), "buffer x: input f32[T*n]",
                   "buffer x: input f32[T*m]"),
              "of x by loop 0, stride n", "of x by loop 0, stride m");
}

/// Returns the first n elements of each row.
HostTensor cut_rows(const HostTensor& x, std::int64_t n) {
  const std::int64_t steps = x.shape()[0], m = x.shape()[1];
  HostTensor made(f32, {steps, n});
  for (std::int64_t i = 0; i < made.numel(); ++i) made.set(i, x.get(i / n * m + i % n));
  return made;
}

void check_run(MockGpu& gpu, const std::string& text, std::int64_t steps, std::int64_t m, std::int64_t n,
               bool reversed) {
  INFO(steps << " rows of " << m << ", of which " << n << " are read");
  const Program program = parse_program(text);
  const auto device = gpu.options().target.backend->open("cuda", {});
  const HostTensor x = lathe::test::small_numbers({steps, m}), h0 = lathe::test::small_numbers({n});
  const Tensors found = run_program(program, *device, {{"x", x}, {"h0", h0}});
  for (const auto& [name, value] : lathe::test::recurrence_results({{"x", cut_rows(x, n)}, {"h0", h0}}, reversed)) {
    INFO(name);
    CHECK(found.at(name).same_bits(value));
  }
}

}  // namespace

TEST_CASE("a loop is captured as launches with the slices of each iteration") {
  for (const MockGpu::By by : {MockGpu::By::interpreter, MockGpu::By::cuda_text}) {
    MockGpu gpu(by);
    for (const std::int64_t steps : {5, 1, 0}) {
      check_run(gpu, on_gpu(lathe::test::recurrence), steps, 8, 8, false);
      if (!gpu.works()) return;
      check_run(gpu, on_gpu(lathe::test::reversed_recurrence()), steps, 8, 8, true);
    }
    CHECK(gpu.driver().graph_launches == 6);
    CHECK(gpu.driver().alive() == 0);
  }
}

TEST_CASE("slices that start at any element are accessed without vectors on a GPU") {
  const std::string text = with_distance(on_gpu(lathe::test::recurrence));
  Program program = parse_program(text);
  kernel::Kernel& step = program.kernels[1];
  const auto loads = [&] {
    const std::string code = cuda::emit(step, gpu_info("sm_80"));
    const auto has = [&](const char* part) { return code.find(part) != std::string::npos; };
    return std::pair(has("load_aligned<4>(h,"), has("load_aligned<4>(x,"));
  };
  CHECK(loads() == std::pair(true, true));
  step.buffers[1].unaligned = true;
  CHECK(loads() == std::pair(true, false));

  for (const MockGpu::By by : {MockGpu::By::interpreter, MockGpu::By::cuda_text}) {
    MockGpu gpu(by);
    check_run(gpu, text, 5, 12, 8, false);
    if (!gpu.works()) return;
    CHECK(gpu.compiling_threads().size() == 1);
    check_run(gpu, text, 5, 9, 8, false);
    CHECK(gpu.compiling_threads().size() == 3);  // the program, and a variant of one kernel
    check_run(gpu, text, 1, 9, 8, false);
    CHECK(gpu.compiling_threads().size() == 4);
  }
}

TEST_CASE("a loop with more launches than a graph should have runs without one") {
  MockGpu gpu;
  check_run(gpu, on_gpu(lathe::test::recurrence), 1 << 15, 4, 4, false);
  CHECK(gpu.driver().graph_launches == 0);
}
