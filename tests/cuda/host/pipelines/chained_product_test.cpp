#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/chained_product.h"
#include "tests/support/kernels/random_product.h"

/// The CUDA text of matmuls whose left operand is in registers, and of the value that a pipeline's consumers
/// broadcast to its producers.
using namespace lathe;
using namespace lathe::kernel;
using test::chained_product;
using test::ChainedProduct;
using test::HostCuda;
using test::prelude_with;
using test::same_bits;

namespace {

constexpr ChainedProduct variants[] = {
    {bf16, false}, {f16, false, true}, {bf16, true}, {f16, true}, {bf16, true, true}};

/// Runs a product of random operands. All columns are processed twice if the first number of the left operand is
/// positive, which depends on the dtype.
template <class Run>
std::vector<float> product(const ChainedProduct& p, std::int64_t columns, const Run& run) {
  return test::random_product(p.dtype, 140 * ChainedProduct::stride, wgmma_rows * ChainedProduct::values, {columns},
                              run);
}

std::vector<float> interpreted(const Kernel& kernel, const ChainedProduct& p, std::int64_t columns) {
  return product(p, columns, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
}

void finds(const char* text, const char* mistake, const ChainedProduct& p = {}) {
  test::check_detected(chained_product(p), [&](const auto& run) { return product(p, 130, run); }, text, mistake);
}

}  // namespace

TEST_CASE("left operands in registers match the hardware fragments on the host, and the bits of the interpreter") {
  std::vector<Kernel> kernels;
  for (const ChainedProduct& p : variants) kernels.push_back(chained_product(p));
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (std::size_t i = 0; i < std::size(variants); ++i)
    for (const std::int64_t columns : {0, 64, 130}) {
      INFO("variant " << i << " columns " << columns);
      const auto by_text =
          product(variants[i], columns, [&](auto buffers, auto dims) { host->run(kernels[i], buffers, dims, 5); });
      CHECK(same_bits(by_text, interpreted(kernels[i], variants[i], columns)));
    }
}

TEST_CASE("the host detects errors in the text of register operands, and of waits inside an iteration") {
  finds("left.lane[2 * i].bits", "left.lane[(2 * i) ^ 2].bits");
  finds("left.lane[2 * i + 1].bits", "left.lane[2 * i].bits");
  finds("wgmma_of_registers<T, lanes, B>(sums.lane, a + 4 * k,", "wgmma_of_registers<T, lanes, B>(sums.lane, a,");
  finds("commit_wgmma();\n  wait_sums(pipeline, sums...);", "wait_sums(pipeline, sums...);");
  finds("wait_wgmma<0>();", "wait_wgmma<1>();");
  finds("k < depth / 16", "k < 2", {.boxes = true});
  finds("if (starts && k == 0)", "if (starts)", {.starts = true});
  finds("if (starts && k == 0)", "if (false)", {.starts = true});
  finds("words[2] = value;", "words[2] = !value;");
  finds("  pipeline.broadcast_parity ^= 1;\n  return value;\n}\n/// Called by the producers",
        "  return value;\n}\n/// Called by the producers");
}

TEST_CASE("races: none in chained products, and a pipeline that starts without a barrier is detected") {
  const Kernel kernels[] = {chained_product({}), chained_product({.boxes = true})};
  auto cuda = test::RacingCuda::build(kernels);
  if (!cuda) return;
  const auto said = [&](test::RacingCuda& by, const Kernel& kernel) -> std::string {
    try {
      product({}, 70, [&](auto buffers, auto dims) { by.run(kernel, buffers, dims); });
    } catch (const test::Race& race) {
      return race.what();
    }
    return "";
  };
  for (const Kernel& kernel : kernels) CHECK(said(*cuda, kernel) == "");
  // If producers do not wait for the consumers' value, the pipeline hangs more often than it races; the host test
  // covers that mistake.
  auto wrong =
      test::RacingCuda::build({&kernels[1], 1}, prelude_with("show_to_other_proxy();\n  __syncthreads();", ""));
  REQUIRE(wrong);
  CHECK(said(*wrong, kernels[1]).find("data race") != std::string::npos);
}

TEST_CASE("chained products compile to wgmma with register operands, overlapped, without spills") {
  std::vector<Kernel> kernels;
  for (const ChainedProduct& p : variants) kernels.push_back(chained_product(p));
  const std::string text = cuda::emit(kernels[2], gpu_info("sm_80"));
  INFO(text);
  for (const char* part :
       {"start_pipeline<2, true>(pipeline_barriers, 1, 128);", "wgmma<48>(r", "wait_sums(pipeline, r",
        "wait_own_sums(pipeline, r", "= broadcast_to_producers(pipeline, ", "= observe_consumers(pipeline);",
        ", transposed_tiles(values, "})
    CHECK(text.find(part) != std::string::npos);
  CHECK(cuda::emit(kernels[4], gpu_info("sm_90a")).find("wgmma<48, true>(r") != std::string::npos);
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::ptx, nullptr);
  for (const char* part : {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
                           "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
                           "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", "wgmma.fence.sync.aligned;",
                           "fence.proxy.async.shared::cta;"})
    CHECK(ptx[2].code.find(part) != std::string::npos);
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
    CHECK(k.resources.registers <= 168);
  }
}
