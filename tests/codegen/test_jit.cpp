#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/core.h>

#include "ir/support/error.h"
#include "tests/codegen/harness.h"
#include "tests/codegen/micro_kernel.h"
#include "tests/support/kernels/no_threads.h"
#include "tests/support/kernels/tile_product.h"
#include "tests/support/programs/memory_store.h"

using namespace lathe;
using namespace lathe::kernel;
using namespace lathe::testing;
using codegen::Jit;
using codegen::TargetCpu;
using lathe::test::MemoryStore;

namespace {

Kernel add_constant(double c, const std::string& buffer_name = "x", const std::string& kernel_name = "add") {
  Builder b(kernel_name);
  b.note("from " + kernel_name);
  Buffer x = b.buffer(buffer_name, f32, Access::read_write);
  Value n = b.dim("n_" + buffer_name);
  b.parallel_for(0, n, 1, [&](Value i) { b.store(x, i, b.load(x, i) + c); });
  return b.finish();
}

float run_on_one(const codegen::CompiledKernel& code, float value) {
  void* buffers[] = {&value};
  const std::int64_t dims[] = {1};
  std::int64_t status = 0;
  code.run(buffers, dims, 0, code.extent(dims), &status);
  return value;
}

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("identical kernels with different names share code") {
  const std::vector<Kernel> kernels{add_constant(1), add_constant(2), add_constant(1, "other", "layer_7")};
  const codegen::CompiledKernels code = Jit().compile(kernels);
  CHECK(code.stats().kernels == 3);
  CHECK(code.stats().distinct == 2);
  CHECK(code.stats().compiled == 2);
  CHECK(code[0].run == code[2].run);
  CHECK(code[0].run != code[1].run);
  CHECK(run_on_one(code[1], 5) == 7);
}

TEST_CASE("an object does not depend on earlier compilations by the same Jit") {
  const std::vector<Kernel> kernels{micro_kernel(), add_constant(1), add_constant(2), add_constant(3),
                                    micro_kernel()};
  MemoryStore together, apart;
  Jit({.threads = 1}, &together).compile(kernels);
  for (const Kernel& kernel : kernels) Jit({}, &apart).compile({&kernel, 1});
  CHECK(together.objects.size() == 4);
  CHECK(together.objects == apart.objects);
}

TEST_CASE("a second compilation loads every object from the store") {
  MemoryStore store;
  const std::vector<Kernel> kernels{add_constant(1), add_constant(2), micro_kernel()};
  const codegen::CompiledKernels cold = Jit({}, &store).compile(kernels);
  CHECK(cold.stats().compiled == 3);
  CHECK(cold.stats().from_store == 0);
  CHECK(store.objects.size() == 3);
  const codegen::CompiledKernels warm = Jit({}, &store).compile(kernels);
  CHECK(warm.stats().compiled == 0);
  CHECK(warm.stats().from_store == 3);
  CHECK(run_on_one(warm[1], 1) == 3);
}

TEST_CASE("stored objects that fail to link are recompiled") {
  MemoryStore store;
  const std::vector<Kernel> kernels{add_constant(1), add_constant(2)};
  Jit({}, &store).compile(kernels);
  const std::map<std::string, std::string> good = store.objects;
  store.objects.begin()->second = "no object";
  const codegen::CompiledKernels garbage = Jit({}, &store).compile(kernels);
  CHECK(garbage.stats().compiled == 2);
  CHECK(garbage.stats().from_store == 0);
  CHECK(run_on_one(garbage[0], 1) == 2);
  CHECK(store.objects == good);
  // The object of another kernel: valid, but it defines other names.
  store.objects.begin()->second = store.objects.rbegin()->second;
  CHECK(run_on_one(Jit({}, &store).compile(kernels)[1], 1) == 3);
  CHECK(store.objects == good);
}

TEST_CASE("code is identical from run to run and for any number of threads") {
  std::vector<Kernel> kernels{micro_kernel()};
  for (int i = 0; i < 10; ++i) kernels.push_back(add_constant(i));
  MemoryStore stores[3];
  for (const int threads : {1, 2, 5}) Jit({.threads = threads}, &stores[threads / 2]).compile(kernels);
  CHECK(stores[0].objects == stores[1].objects);
  CHECK(stores[0].objects == stores[2].objects);
}

TEST_CASE("kernels compile on the calling thread if the system cannot start threads") {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 8; ++i) kernels.push_back(add_constant(i));
  const lathe::test::NoThreads no_threads;
  REQUIRE_THROWS_AS(std::thread([] {}).join(), std::system_error);
  const codegen::CompiledKernels code = Jit({.threads = 4}).compile(kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(run_on_one(code[i], 1) == 1 + static_cast<float>(i));
}

TEST_CASE("keys distinguish kernels and targets") {
  const TargetCpu host = TargetCpu::host(), v3 = TargetCpu::named("x86-64-v3");
  const std::string key = codegen::object_key(add_constant(1), host);
  CHECK(key.size() == 64);
  CHECK(key == codegen::object_key(add_constant(1, "y", "z"), host));
  CHECK(key != codegen::object_key(add_constant(1.0000001), host));
  CHECK(key != codegen::object_key(add_constant(1), v3));
  TargetCpu other = host;
  other.features += ",-fma";
  CHECK(key != codegen::object_key(add_constant(1), other));
}

TEST_CASE("a compiled kernel outlives its Jit and can run on many threads at once") {
  codegen::CompiledKernels code = Jit().compile(std::vector<Kernel>{add_constant(1)});
  const codegen::CompiledKernels copy = code;
  code = {};
  std::vector<float> data(10000, 1.0f);
  void* buffers[] = {data.data()};
  const std::int64_t dims[] = {10000};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::int64_t status = 0;
      copy[0].run(buffers, dims, t * 2500, (t + 1) * 2500, &status);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(data == std::vector<float>(10000, 2.0f));
}

TEST_CASE("targets: names, unknown names, assembly for other CPUs") {
  CHECK_THROWS_WITH(TargetCpu::named("i386"), Catch::Contains("unknown_cpu") && Catch::Contains("x86-64-v3"));
  TargetCpu alien = TargetCpu::named("x86-64-v2");
  alien.features += ",+no-such-feature";
  const std::vector<Kernel> kernels{add_constant(1)};
  CHECK_THROWS_WITH(Jit({.target = alien}).compile(kernels), Catch::Contains("cpu_mismatch"));
  CHECK(codegen::emit_assembly(micro_kernel(), TargetCpu::named("x86-64-v4")).find("zmm") != std::string::npos);
  CHECK(codegen::emit_assembly(micro_kernel(), TargetCpu::named("x86-64-v3")).find("zmm") == std::string::npos);
  CHECK(codegen::emit_assembly(micro_kernel(), TargetCpu::named("x86-64-v2")).find("ymm") == std::string::npos);
  const std::string raw = codegen::emit_llvm_ir(add_constant(1), TargetCpu::host(), false);
  CHECK(raw.find("define internal void @add_body") != std::string::npos);
  CHECK(raw.substr(0, 11) == "; from add\n");
  CHECK(codegen::emit_assembly(add_constant(1), TargetCpu::host()).substr(0, 11) == "# from add\n");
  CHECK(codegen::llvm_version().substr(0, 3) == "19.");
}

TEST_CASE("an empty list of kernels compiles to nothing") { CHECK(Jit().compile({}).size() == 0); }

TEST_CASE("rejects a kernel with a barrier") {
  Builder b("gpu");
  Buffer x = b.buffer("x", f32, Access::read_write);
  b.for_loop(
      0, 4, 1,
      [&](Value) {
        b.for_loop(
            0, 32, 1,
            [&](Value t) {
              b.store(x, t, b.load(x, t) + 1.0);
              b.barrier();
            },
            LoopKind::thread_x);
      },
      LoopKind::block_x);
  const std::vector<Kernel> kernels{b.finish()};
  CHECK_THROWS_WITH(Jit().compile(kernels), Catch::Contains("barrier"));
}

TEST_CASE("rejects a kernel with mma or asynchronous copies") {
  const std::vector<Kernel> kernels{test::tile_product({})};
  CHECK_THROWS_WITH(Jit().compile(kernels),
                    Catch::Contains("async_copy in a kernel for the CPU") && Catch::Contains("[machine_hook]"));
}

TEST_CASE("compiles 5,000 kernels that call the C library in one call") {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 5000; ++i) {
    Builder b("erf");
    const Buffer x = b.buffer("x", f32, Access::read_write);
    b.store(x, 0, b.cast(b.apply(ScalarOp::erf, {b.cast(b.load(x, b.index(0)), f64)}), f32) + i);
    kernels.push_back(b.finish());
  }
  const codegen::CompiledKernels code = Jit().compile(kernels);
  CHECK(code.stats().distinct == 5000);
  for (const std::size_t i : {0u, 1u, 2500u, 4999u}) CHECK(run_on_one(code[i], 0) == static_cast<float>(i));
}

TEST_CASE("compile time", "[.bench]") {
  MemoryStore store;
  std::vector<Kernel> kernels;
  for (int i = 4; i < 13; ++i) kernels.push_back(micro_kernel(i, 2));
  for (int i = 0; i < 20; ++i) kernels.push_back(add_constant(i));
  std::printf("%zu kernels cold: %.1f ms\n", kernels.size(), milliseconds([&] { Jit({}, &store).compile(kernels); }));
  std::printf("cold again: %.1f ms\n", milliseconds([&] { Jit().compile(kernels); }));
  std::printf("one thread: %.1f ms\n", milliseconds([&] { Jit({.threads = 1}).compile(kernels); }));
  for (int i = 0; i < 3; ++i) std::printf("warm: %.1f ms\n", milliseconds([&] { Jit({}, &store).compile(kernels); }));
}
