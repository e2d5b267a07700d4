#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/index/index_width.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/phases.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/phased_kernel.h"

/// The CUDA text of kernels of phases, whose blocks are resident and meet at grid barriers.
using namespace lathe;
using namespace lathe::kernel;
using test::awaiting_kernel;
using test::HostCuda;
using test::phased_kernel;
using test::phased_result;
using test::prelude_with;
using test::RacingCuda;
using test::same_bits;

namespace {

std::vector<float> interpreted(const Kernel& kernel, std::int64_t rows, std::int64_t cols) {
  return phased_result(rows, cols, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
}

void finds(const char* text, const char* mistake, const Kernel& kernel = phased_kernel(), std::int64_t rows = 9) {
  test::check_detected(kernel, [rows](const auto& run) { return phased_result(rows, 300, run); }, text, mistake);
}

void races(const char* text, const char* mistake, const Kernel& kernel = phased_kernel()) {
  INFO(mistake << " for " << text);
  auto racing = RacingCuda::build({&kernel, 1}, prelude_with(text, mistake));
  if (!racing) return;
  CHECK_THROWS_AS(phased_result(9, 300, [&](auto buffers, auto dims) { racing->run(kernel, buffers, dims); }),
                  test::Race);
}

}  // namespace

TEST_CASE("phases: their blocks run several at a time in the blocks of the grid") {
  const GpuInfo& gpu = gpu_info("sm_90a");
  const Kernel kernel = phased_kernel();
  const cuda::Mapping mapping = cuda::mapping_of(kernel, gpu);
  CHECK(mapping.is_resident);
  CHECK(mapping.threads == std::array{256, 1, 1});
  CHECK(mapping.shared_bytes == 2 * 512);
  const std::int64_t dims[] = {10, 300, 3000};
  // 12 blocks of 256 threads; 10 of 128, two at a time; 190 of 16 threads, eight at a time.
  CHECK(cuda::grid_of(kernel, gpu, dims)[0] == 24);
  const std::string text = cuda::emit(kernel, gpu);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  CHECK(has("__launch_bounds__(256, 2)\nphased(const f32* x, const f32* w, f32* y, "));
  CHECK(has("PhaseBlock<256, 1, 1, 256, 1, 256, 0, 1> phase(first, max(block_count(0LL, n, 256LL), 1LL), 1, 1)"));
  CHECK(has("PhaseBlock<128, 1, 1, 128, 2, 256, 512, 1> phase(first, "));
  CHECK(has(", checks + 1, status);"));
  CHECK(
      has("  grid.first = phased_1_row_sum(y, sums, rows, cols, status, 2, grid.first);\n"
          "  grid.first = phased_0_scale(y, z, n, status, 0, grid.first);\n"
          "  grid.arrive(), grid.prefetch(w, 0, 40);\n  grid.wait();\n"));
  CHECK(cuda::int32_suffices(kernel, gpu, dims));
  const std::int64_t large[] = {std::int64_t{1} << 20, std::int64_t{1} << 20, std::int64_t{1} << 40};
  CHECK_FALSE(cuda::int32_suffices(kernel, gpu, large));
}

TEST_CASE("phases on the host give the bits of the interpreter, for grids of any size") {
  for (const Kernel& kernel : {phased_kernel(), awaiting_kernel()}) {
    const auto host = HostCuda::build({&kernel, 1});
    if (!host) return;
    for (const auto& [rows, cols] : {std::pair{9, 300}, {3, 40}, {1, 1}, {0, 7}})
      for (const std::uint64_t seed : {1, 2, 3}) {
        INFO(rows << " x " << cols << ", seed " << seed);
        const auto found =
            phased_result(rows, cols, [&](auto buffers, auto dims) { host->run(kernel, buffers, dims, seed); });
        CHECK(same_bits(found, interpreted(kernel, rows, cols)));
      }
    std::int64_t code = 0;
    phased_result(1000, 1, [&](auto buffers, auto dims) { code = host->run(kernel, buffers, dims); });
    CHECK(code == 3);
  }
}

TEST_CASE("phases without a barrier between them use shared memory one after the other") {
  const auto reversing = [](const char* name, int threads) {
    return fmt::format(R"(
  kernel @{0}(x: read f32, y: write f32; n) {{
    for i0 in 0..n step {1} @block.x {{
      alloc part: f32[{1}] @shared
      for i1 in 0..{1} step 1 @thread.x {{
        %0 = add i0, i1 : i64
        %1 = load x[%0] : f32
        %2 = sub {2}, i1 : i64
        store part[%2] = %1
        barrier
        %3 = load part[i1] : f32
        store y[%0] = %3
      }}
    }}
  }})",
                       name, threads, threads - 1);
  };
  // A block has two blocks of the first phase at a time, each with half of the memory that the second one uses.
  const Kernel kernel = parse_kernel("kernel @k(x: read f32, y: write f32, z: write f32; n) {" +
                                         reversing("narrow", 128) + reversing("wide", 256) +
                                         "\n  run_phase 0(read x, write y; n)\n  run_phase 1(read x, write z; n)\n}",
                                     "shared");
  const auto result = [](const auto& run) {
    std::vector<float> x(2048), y(2048), z(2048);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    std::vector<BoundBuffer> buffers;
    for (std::vector<float>* each : {&x, &y, &z}) buffers.push_back({each->data(), std::ssize(*each)});
    const std::vector<std::int64_t> dims{2048};
    run(std::span<const BoundBuffer>(buffers), std::span<const std::int64_t>(dims));
    y.insert(y.end(), z.begin(), z.end());
    return y;
  };
  const auto expected = result([&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
  const auto host = HostCuda::build({&kernel, 1});
  auto racing = RacingCuda::build({&kernel, 1});
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    if (host) CHECK(result([&](auto buffers, auto dims) { host->run(kernel, buffers, dims, seed); }) == expected);
    if (racing) CHECK(result([&](auto buffers, auto dims) { racing->run(kernel, buffers, dims, seed); }) == expected);
  }
}

TEST_CASE("phases: the host detects errors in the text of barriers and blocks") {
  finds("    arrive();\n    has_arrived = false;", "    arrive();\n    return;");
  finds("shim_grid_wait(word, before);", "");
  finds("before ^= flips;", "");
  finds("flips - (gridDim.x - 1)", "flips - gridDim.x");
  finds("number += i64(at_once) * gridDim.x", "number += i64(at_once + 1) * gridDim.x");
  finds("place * shared_bytes", "0 * shared_bytes + 16");
  finds("own / x % y", "own % y");
  finds("- first;\n    number", "- 0;\n    number", phased_kernel(), 1);
  finds("shim_part_barrier(place * held, x * y * z);", "");
}

TEST_CASE("phases: the host detects errors in the text of awaited elements") {
  const Kernel kernel = awaiting_kernel();
  finds("if (is_absent(word)) await(", "if (false) await(", kernel);
  finds("broadcast<4>(~0u)", "broadcast<4>(0u)", kernel);
  finds("static_cast<Word>(~Word(0))", "Word(0)", kernel);
}

TEST_CASE("phases: awaited loads of a thread overlap until one of them is used") {
  const Kernel kernel = parse_kernel(R"(kernel @both(w: read f32, a: readwrite f32, b: readwrite f32, y: write f32) {
  kernel @copy(w: read f32, a: write f32) {
    for i0 in 0..64 step 16 @block.x {
      for i1 in 0..4 step 1 @thread.x {
        %0 = mul i1, 4 : i64
        %1 = add i0, %0 : i64
        %2 = load w[%1] align 16 : f32x4
        store a[%1] = %2
      }
    }
  }
  kernel @sum(a: read f32, b: read f32, y: write f32) {
    for i0 in 0..64 step 32 @block.x {
      for i1 in 0..8 step 1 @thread.x {
        %0 = mul i1, 4 : i64
        %1 = add i0, %0 : i64
        %2 = load a[%1] align 16 : f32x4
        %3 = load b[%1] align 16 : f32x4
        %4 = load b[i1] : f32
        %5 = add %2, %3 : f32x4
        %6 = broadcast %4 : f32x4
        %7 = add %5, %6 : f32x4
        store y[%1] = %7
      }
    }
  }
  grid_clear a count 64
  grid_clear b count 64
  grid_barrier
  run_phase 0(read w, write awaited a)
  run_phase 0(read w, write awaited b)
  run_phase 1(read awaited a, read awaited b, write y)
}
)",
                                     "both");
  verify(kernel);
  const std::string text = cuda::emit(kernel, gpu_info("sm_90a"));
  const auto last_look = text.rfind("= look("), first_wait = text.find("= settled_aligned<4>(");
  REQUIRE(last_look != std::string::npos);
  CHECK(text.find("= look_aligned<4>(") < last_look);
  CHECK(last_look < first_wait);
  const auto result = [](const auto& run) {
    std::vector<float> w, a(64, -1), b = a, y = a;
    for (int i = 0; i < 64; ++i) w.push_back(static_cast<float>(i * 5 % 17 - 8));
    std::vector<BoundBuffer> buffers;
    for (std::vector<float>* each : {&w, &a, &b, &y}) buffers.push_back({each->data(), std::ssize(*each)});
    run(std::span<const BoundBuffer>(buffers), std::span<const std::int64_t>());
    return y;
  };
  const auto expected = result([&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
  CHECK(expected[3] == 2 * (15 - 8) + -8);
  const auto host = HostCuda::build({&kernel, 1});
  auto racing = RacingCuda::build({&kernel, 1});
  for (const std::uint64_t seed : {1, 2}) {
    if (host) CHECK(result([&](auto buffers, auto dims) { host->run(kernel, buffers, dims, seed); }) == expected);
    if (racing) CHECK(result([&](auto buffers, auto dims) { racing->run(kernel, buffers, dims, seed); }) == expected);
  }
}

TEST_CASE("phases: no races on the host, with a thread for each thread of all blocks, and removed waits are found") {
  for (const Kernel& kernel : {phased_kernel(), awaiting_kernel()}) {
    auto racing = RacingCuda::build({&kernel, 1});
    if (!racing) return;
    for (const std::uint64_t seed : {1, 2}) {
      const auto found =
          phased_result(9, 300, [&](auto buffers, auto dims) { racing->run(kernel, buffers, dims, seed); });
      CHECK(same_bits(found, interpreted(kernel, 9, 300)));
    }
  }
  races("__atomic_load_n(static_cast<const Word*>(p), __ATOMIC_RELAXED)", "*static_cast<const Word*>(p)",
        awaiting_kernel());
  races("__atomic_store_n(static_cast<Word*>(p), word, __ATOMIC_RELAXED);", "*static_cast<Word*>(p) = word;",
        awaiting_kernel());
  races("shim_grid_wait(word, before);", "");
  races("    __syncthreads();\n    has_arrived = true;", "    has_arrived = true;");
  races("      before ^= flips;\n    }\n    __syncthreads();", "      before ^= flips;\n    }");
}

TEST_CASE(
    "phases: NVRTC reads and writes global memory, through caches that see other blocks' writes, without spills") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const Kernel kernel = phased_kernel();
  const auto count = [](const std::string& text, std::string_view what) {
    int found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    INFO(name);
    const auto compile = [&](cuda::Output output) {
      return cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named(name), output, nullptr)[0];
    };
    const std::string ptx = compile(cuda::Output::ptx).code;
    CHECK(count(ptx, "ld.global.nc") == 0);
    CHECK(count(ptx, "ld.f32") + count(ptx, "st.f32") == 0);
    CHECK(count(ptx, "red.release.gpu") > 0);
    CHECK(count(ptx, "ld.acquire.gpu") > 0);
    CHECK(count(ptx, "prefetch.global.L2") > 0);
    CHECK(count(ptx, "call.uni") == 5);  // four phases and a prefetch
    const cuda::Resources resources = compile(cuda::Output::cubin).resources;
    CHECK(resources.spill_bytes == 0);
    CHECK(resources.registers <= 128);
  }
}

TEST_CASE("phases: NVRTC polls awaited elements, and stores them, in L2") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const Kernel kernel = awaiting_kernel();
  const std::string ptx =
      cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named("sm_90a"), cuda::Output::ptx, nullptr)[0].code;
  CHECK(ptx.find("ld.relaxed.gpu.global.u32") != std::string::npos);
  CHECK(ptx.find("st.relaxed.gpu.global.u32") != std::string::npos);
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    const cuda::Resources resources =
        cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named(name), cuda::Output::cubin, nullptr)[0]
            .resources;
    CHECK(resources.spill_bytes == 0);
  }
}
