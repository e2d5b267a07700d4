#include <catch2/catch.hpp>

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/support/kernels/random_product.h"
#include "tests/support/kernels/wgmma_product.h"

/// The CUDA text of pipelines and wgmma: on the host, where a warpgroup reads its operands through descriptors as on
/// sm_90a, and compiled by NVRTC.
using namespace lathe;
using namespace lathe::kernel;
using test::HostCuda;
using test::same_bits;
using test::wgmma_product;
using test::WgmmaProduct;
using Mistake = WgmmaProduct::Mistake;

namespace {

const WgmmaProduct variants[] = {{bf16, false, false},
                                 {f16, false, true},
                                 {.dtype = bf16, .left_transposed = true, .tiles = 2},
                                 {bf16, true, true},
                                 {.right_transposed = true, .tiles = 2, .left_boxes = true, .right_boxes = true},
                                 {.dtype = f16, .left_transposed = true, .left_boxes = true, .right_boxes = true},
                                 {.left_boxes = true}};

template <class Run>
std::vector<float> product(const WgmmaProduct& p, std::int64_t k, const Run& run) {
  return test::random_product(p.dtype, 32768, static_cast<std::size_t>(p.tiles * wgmma_rows * wgmma_columns),
                              {k, 200, 200}, run);
}

std::vector<float> interpreted(const Kernel& kernel, const WgmmaProduct& p, std::int64_t k) {
  return product(p, k, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
}
std::vector<float> by_text(const HostCuda& host, const Kernel& kernel, const WgmmaProduct& p, std::int64_t k,
                           std::uint64_t seed = 7) {
  return product(p, k, [&](auto buffers, auto dims) { host.run(kernel, buffers, dims, seed); });
}

}  // namespace

TEST_CASE("pipelines on the host match the hardware descriptors, the fragments and the bits of the interpreter") {
  std::vector<Kernel> kernels;
  for (const WgmmaProduct& p : variants) kernels.push_back(wgmma_product(p));
  const WgmmaProduct early{.mistake = Mistake::next_slot}, wrong{.mistake = Mistake::one_slot};
  for (const WgmmaProduct& p : {early, wrong}) kernels.push_back(wgmma_product(p));
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (std::size_t i = 0; i < std::size(variants); ++i)
    for (const std::int64_t k : {64, 150}) {
      INFO("variant " << i << " k " << k);
      CHECK(same_bits(by_text(*host, kernels[i], variants[i], k), interpreted(kernels[i], variants[i], k)));
    }
  const std::vector<float> right = interpreted(kernels[0], variants[0], 150);
  for (const std::size_t i : {std::size(variants), std::size(variants) + 1})
    CHECK_FALSE(same_bits(by_text(*host, kernels[i], variants[0], 150), right));
}

namespace {

void finds(const WgmmaProduct& p, std::int64_t k, const char* text, const char* mistake) {
  test::check_detected(wgmma_product(p), [&](const auto& run) { return product(p, k, run); }, text, mistake);
}

}  // namespace

TEST_CASE("the host detects errors in the text of pipelines and warpgroups") {
  const WgmmaProduct p{.right_transposed = true, .tiles = 2};
  finds(p, 150, "u64(1024 / 16) << 32", "u64(2048 / 16) << 32");
  finds(p, 150, "u64(1) << 62", "u64(2) << 62");
  finds(p, 150, "16 * 128 : 16 * 2", "8 * 128 : 16 * 2");
  finds(p, 150, "wait_barrier(barriers + at, round);", "");
  finds(p, 150, "wait_barrier(barriers + stages + at, round ^ 1)", "wait_barrier(barriers + stages + at, round)");
  finds(p, 150, "empty(held);\n    held = at;", "empty(at);");
  finds(p, 150, "wait_wgmma<1>();", "wait_wgmma<2>();");
  finds(p, 150, "wait_wgmma<0>();", "wait_wgmma<1>();");
  finds(p, 150, "empty(held);\n    held = -1;", "held = -1;");
}

TEST_CASE("the host detects errors in the text of TMA boxes") {
  const WgmmaProduct p{.right_transposed = true, .tiles = 2, .left_boxes = true, .right_boxes = true};
  finds(p, 152, "expect_bytes(pipeline.barriers + pipeline.at, rows * 128);", "");
  finds(p, 152, "expect_bytes(pipeline.barriers + pipeline.at, rows * 128);",
        "expect_bytes(pipeline.barriers + pipeline.at, rows * 64);");
  finds(p, 152, "expect_bytes(pipeline.barriers + pipeline.at, rows * 128);",
        "expect_bytes(pipeline.barriers + pipeline.at, rows * 256);");
  finds(p, 152, "LATHE_FUNCTION void sent() {\n    arrive(barriers + at);", "LATHE_FUNCTION void sent() {");
  finds(p, 152, "wait_full() const { wait_barrier(barriers + at, round); }", "wait_full() const {}");
}

TEST_CASE("pipelines print as CUDA C++ and compile to wgmma, with accumulators in registers") {
  std::vector<Kernel> kernels;
  for (const WgmmaProduct& p : variants) kernels.push_back(wgmma_product(p));
  const std::string text = cuda::emit(kernels[1], gpu_info("sm_80"));
  INFO(text);
  for (const char* part :
       {"__launch_bounds__(256, 1)", "StagePipeline<2> pipeline = start_pipeline<2>(pipeline_barriers, 128, 128);",
        "pipeline.wait_empty();", "pipeline.filled();", "pipeline.wait_copied();", "wgmma(r0, tiles(a, ",
        "), transposed_tiles(b, ", "pipeline.multiplied();", "wait_sums(pipeline, r0);"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(cuda::mapping_of(kernels[0], gpu_info("sm_80")).shared_bytes == 2 * (3 * 8192 + 16));
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  CHECK(cuda::emit(kernels[4], gpu_info("sm_80")).find("const __grid_constant__ TensorMap left_map") !=
        std::string::npos);
  CHECK(cuda::mapping_of(kernels[4], gpu_info("sm_80")).block_size() == 160);
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::ptx, nullptr);
  for (const char* part : {"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", "wgmma.wait_group.sync.aligned 1;",
                           "wgmma.wait_group.sync.aligned 0;", "mbarrier.try_wait.parity",
                           "cp.async.mbarrier.arrive.noinc", "fence.proxy.async"})
    CHECK(ptx[1].code.find(part) != std::string::npos);
  for (const char* part :
       {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", "mbarrier.expect_tx"})
    CHECK(ptx[4].code.find(part) != std::string::npos);
  CHECK(ptx[4].code.find("cp.async.cg") == std::string::npos);
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
    CHECK(k.resources.registers <= 128);
  }
}
