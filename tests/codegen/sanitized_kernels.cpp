#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <functional>
#include <thread>
#include <vector>

#include "codegen/llvm/jit.h"
#include "ir/kernel/build/builder.h"
#include "tests/support/kernels/tile_blocks.h"

/// In a program built with a sanitizer, the kernels that it compiles are also checked. Each defect runs in its own
/// process, which must fail.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

using namespace lathe;
using namespace lathe::kernel;

namespace {

/// x[i + shift * step] = x[i] + 1 for i in 0 .. n, by vectors of `lanes`; the last one is masked.
codegen::CompiledKernels add_one(int lanes, bool masked) {
  Builder b("add_one");
  const Buffer x = b.buffer("x", f32, Access::read_write);
  const Value n = b.dim("n");
  b.parallel_for(0, n, lanes, [&](Value i) {
    if (masked) {
      const Value mask = b.tail_mask(n - i, lanes);
      b.store(x, i, b.load(x, i, lanes, mask) + 1.0, mask);
    } else {
      b.store(x, i, b.load(x, i, lanes) + 1.0);
    }
  });
  const Kernel kernels[] = {b.finish()};
  return codegen::Jit().compile(kernels);
}

void run(const codegen::CompiledKernels& code, float* x, std::int64_t n) {
  void* buffers[] = {x};
  std::int64_t status = 0;
  code[0].run(buffers, &n, 0, code[0].extent(&n), &status);
}

/// A tile_mma of 16 x 16 sums over 32 k, with rows of x that are 32 elements long; nothing without AMX.
std::function<void(std::uint16_t*)> tile_product() {
  if (!codegen::TargetCpu::host().has_tiles()) return {};
  const Kernel kernels[] = {test::tile_block(16, 16, false)};
  return [code = codegen::Jit().compile(kernels)](std::uint16_t* x) {
    std::vector<float> c(256), out(256);
    std::vector<std::uint16_t> y(512);
    void* buffers[] = {c.data(), x, y.data(), out.data()};
    const std::int64_t dims[] = {32, 32, 32};
    std::int64_t status = 0;
    code[0].run(buffers, dims, 0, 1, &status);
  };
}

bool ends_well(const std::function<void()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(STDERR_FILENO);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)

TEST_CASE("AddressSanitizer checks the accesses of compiled kernels") {
  for (const int lanes : {1, 4, 16})
    for (const bool masked : {false, true}) {
      INFO(lanes << (masked ? " lanes, masked" : " lanes"));
      const auto code = add_one(lanes, masked);
      std::vector<float> x(32);
      CHECK(ends_well([&] { run(code, x.data(), 32); }));
      CHECK_FALSE(ends_well([&] { run(code, x.data(), 33); }));
    }
}

TEST_CASE("AddressSanitizer checks tile register loads") {
  const auto product = tile_product();
  if (!product) return;
  std::vector<std::uint16_t> x(512), short_of_one(511);
  CHECK(ends_well([&] { product(x.data()); }));
  CHECK_FALSE(ends_well([&] { product(short_of_one.data()); }));
}

#else

TEST_CASE("ThreadSanitizer checks tile register loads") {
  const auto product = tile_product();
  if (!product) return;
  std::vector<std::uint16_t> x(520);
  const auto beside = [&](std::size_t position) {
    std::thread other([&] { x[position] = 1; });
    product(x.data());
    other.join();
  };
  CHECK(ends_well([&] { beside(512); }));
  CHECK_FALSE(ends_well([&] { beside(511); }));
}

TEST_CASE("ThreadSanitizer checks the accesses of compiled kernels") {
  for (const int lanes : {1, 4, 16})
    for (const bool masked : {false, true}) {
      INFO(lanes << (masked ? " lanes, masked" : " lanes"));
      const auto code = add_one(lanes, masked);
      std::vector<float> x(64);
      const auto both = [&](float* first, float* second) {
        std::thread other([&] { run(code, first, 32); });
        run(code, second, 32);
        other.join();
      };
      CHECK(ends_well([&] { both(x.data(), x.data() + 32); }));
      CHECK_FALSE(ends_well([&] { both(x.data(), x.data() + 16); }));
    }
}

#endif
#endif
