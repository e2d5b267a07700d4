#include "tests/cuda/host/host_cuda.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/build/builder.h"
#include "ir/support/error.h"
#include "tests/cuda/host/kernels.h"

using namespace lathe;
using namespace lathe::kernel;
using test::HostCuda;

namespace {

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(std::sin(static_cast<float>(i)));
  return result;
}

BoundBuffer bind(std::vector<float>& data) { return {data.data(), static_cast<std::int64_t>(data.size())}; }

/// Checks that the second buffer is the same after a run on the host and in the interpreter.
void check_same(const HostCuda& host, const Kernel& kernel, std::int64_t in, std::int64_t out,
                const std::vector<std::int64_t>& dims) {
  std::vector<float> x = numbers(in), expected(static_cast<std::size_t>(out)), found;
  const BoundBuffer reference[] = {bind(x), bind(expected)};
  CHECK(interpret(kernel, reference, dims) == 0);
  for (const std::uint64_t seed : {1, 2, 3}) {
    found.assign(static_cast<std::size_t>(out), -7);
    const BoundBuffer buffers[] = {bind(x), bind(found)};
    CHECK(host.run(kernel, buffers, dims, seed) == 0);
    CHECK(std::ranges::equal(std::as_bytes(std::span(found)), std::as_bytes(std::span(expected))));
  }
}

}  // namespace

TEST_CASE("CUDA text on the host: blocks, threads, shared memory, barriers") {
  const Kernel kernels[] = {test::scale_kernel(), test::reverse_kernel(), test::row_sum_kernel()};
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (const std::int64_t n : {0, 1, 3, 4, 127, 128, 129, 1000}) check_same(*host, kernels[0], n, n, {n});
  check_same(*host, kernels[1], 96, 96, {3});
  check_same(*host, kernels[2], 7 * 131, 7, {7, 131});
}

TEST_CASE("CUDA text on the host: a missing barrier gives poison, a divergent barrier is an error") {
  Builder b("parting");
  const auto thread = [&](Value t) { b.for_loop(0, t, 1, [&](Value) { b.barrier(); }); };
  b.for_loop(0, 4, 1, thread, LoopKind::thread_x);
  const Kernel kernels[] = {test::reverse_kernel(false), b.finish()};
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  std::vector<float> x = numbers(32), y(32);
  const BoundBuffer buffers[] = {bind(x), bind(y)};
  const std::int64_t blocks[] = {1};
  CHECK(host->run(kernels[0], buffers, blocks) == 0);
  CHECK(std::any_of(y.begin(), y.end(), [](float v) { return std::isnan(v); }));
  CHECK_THROWS_AS(host->run(kernels[1], {}, {}), InternalError);
}

TEST_CASE("CUDA text on the host: the lowest code of the failed checks is reported") {
  Builder b("checks");
  const auto thread = [&](Value t) {
    b.check(t < 20, 9);
    b.check(t < 30, 4);
    b.check(t < 32, 2);
  };
  b.for_loop(0, 32, 1, thread, LoopKind::thread_x);
  const Kernel kernel = b.finish();
  const auto host = HostCuda::build({&kernel, 1});
  if (!host) return;
  for (const std::uint64_t seed : {1, 2, 3}) CHECK(host->run(kernel, {}, {}, seed) == 4);
}

TEST_CASE("CUDA text on the host: warp shuffles, for any type") {
  std::vector<Kernel> kernels;
  for (const DType dtype : {f64, f32, i64, i32, boolean})
    for (const Kernel& kernel : {test::turn_kernel(dtype), test::partner_kernel(dtype)}) kernels.push_back(kernel);
  CHECK(cuda::emit(test::turn_kernel(), gpu_info("sm_80")).find("from_lane(") != std::string::npos);
  CHECK(cuda::emit(test::partner_kernel(), gpu_info("sm_80")).find("from_partner<5>(") != std::string::npos);
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (const Kernel& kernel : kernels) {
    const std::size_t size = size_in_bytes(kernel.buffers[0].dtype);
    std::vector<std::uint8_t> x(64 * size), expected(x.size()), found(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(size == 1 ? i / 3 % 2 : i);
    const BoundBuffer reference[] = {{x.data(), 64}, {expected.data(), 64}};
    const BoundBuffer buffers[] = {{x.data(), 64}, {found.data(), 64}};
    CHECK(interpret(kernel, reference, {}) == 0);
    CHECK(host->run(kernel, buffers, {}, 3) == 0);
    CHECK(found == expected);
  }
}
