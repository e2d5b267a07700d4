#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/interpret/interpreter.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/kernels/random_product.h"
#include "tests/support/kernels/tile_product.h"

/// The CUDA text of mma and asynchronous copies: on the host with the hardware's lane layouts, and compiled by NVRTC.
using namespace lathe;
using namespace lathe::kernel;
using test::HostCuda;
using test::tile_product;
using test::TileProduct;

namespace {

std::vector<TileProduct> variants() {
  std::vector<TileProduct> all;
  for (const auto& [rows, columns] : {std::pair{16, 16}, {32, 64}, {64, 32}})
    for (const bool left : {false, true})
      for (const bool right : {false, true}) all.push_back({all.size() % 3 ? bf16 : f16, rows, columns, left, right});
  return all;
}

template <class Run>
std::vector<float> product(const TileProduct& p, std::int64_t k, const Run& run) {
  return test::random_product(p.dtype, 4096, static_cast<std::size_t>(p.left_rows * p.right_rows), {k, 64, 64}, run);
}

}  // namespace

TEST_CASE("mma on the host matches the lanes of the hardware and the bits of the interpreter") {
  std::vector<Kernel> kernels;
  for (const TileProduct& p : variants()) kernels.push_back(tile_product(p));
  TileProduct forgets = variants()[0];
  forgets.waits = false;
  kernels.push_back(tile_product(forgets));
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (std::size_t i = 0; i < variants().size(); ++i) {
    const TileProduct p = variants()[i];
    for (const std::int64_t k : {16, 37}) {
      const auto expected = product(p, k, [&](auto buffers, auto dims) { interpret(kernels[i], buffers, dims); });
      const auto found = product(p, k, [&](auto buffers, auto dims) { host->run(kernels[i], buffers, dims, 7); });
      INFO(p.left_rows << " x " << p.right_rows << " variant " << i << " k " << k);
      CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
    }
  }
  const auto poisoned =
      product(forgets, 16, [&](auto buffers, auto dims) { host->run(kernels.back(), buffers, dims, 7); });
  CHECK(std::any_of(poisoned.begin(), poisoned.end(), [](float v) { return std::isnan(v); }));
}

TEST_CASE("mma and copies print as CUDA C++ and compile to tensor core instructions") {
  const Kernel kernel = tile_product({.left_rows = 64, .right_rows = 32, .right_transposed = true});
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  INFO(text);
  for (const char* part : {"= mma<64, 32>(matrix(a, 0, 24), transposed(b, 0, 40), ", "async_copy(a, ",
                           "commit_copies();", "wait_copies<0>();"})
    CHECK(text.find(part) != std::string::npos);
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const auto ptx =
      cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named("sm_80"), cuda::Output::ptx, nullptr);
  for (const char* part :
       {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "cp.async.cg.shared.global", "cp.async.wait_group 0"})
    CHECK(ptx[0].code.find(part) != std::string::npos);
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
    for (const auto& k :
         cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
      INFO(arch << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.stack_bytes == 0);
    }
}
