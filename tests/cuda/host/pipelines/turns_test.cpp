#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/interpret/interpreter.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/random_product.h"
#include "tests/support/kernels/turned_product.h"

/// The CUDA text of warpgroups that take turns, and of waits that leave matmuls running.
using namespace lathe;
using namespace lathe::kernel;
using test::HostCuda;
using test::prelude_with;
using test::same_bits;
using test::turned_product;
using test::TurnedProduct;

namespace {

constexpr TurnedProduct variants[] = {{bf16, 2}, {f16, 3}, {bf16, 1}};

template <class Run>
std::vector<float> product(const TurnedProduct& p, std::int64_t columns, const Run& run) {
  return test::random_product(p.dtype, 330 * 2 * TurnedProduct::width,
                              static_cast<std::size_t>(p.rows() * TurnedProduct::width), {columns}, run);
}

std::vector<float> interpreted(const Kernel& kernel, const TurnedProduct& p, std::int64_t columns) {
  return product(p, columns, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
}

void finds(const char* text, const char* mistake, const TurnedProduct& p = {}) {
  test::check_detected(turned_product(p), [&](const auto& run) { return product(p, 330, run); }, text, mistake);
}

}  // namespace

TEST_CASE("turns on the host give the bits of the interpreter") {
  for (const TurnedProduct& p : variants) {
    const Kernel kernel = turned_product(p);
    const auto host = HostCuda::build({&kernel, 1});
    if (!host) return;
    for (const std::int64_t columns : {0, 64, 130, 330}) {
      INFO(p.warpgroups << " warpgroups, " << columns << " columns");
      const auto by_text = product(p, columns, [&](auto buffers, auto dims) { host->run(kernel, buffers, dims, 5); });
      CHECK(same_bits(by_text, interpreted(kernel, p, columns)));
    }
  }
}

TEST_CASE("the host detects errors in the text of turns, groups and waits") {
  finds("wait_wgmma<leaving>();", "wait_wgmma<leaving + 1>();");
  finds("commit_wgmma();\n  wait_ended_sums<leaving>", "wait_ended_sums<leaving>");
  finds("wait_wgmma<0>();", "wait_wgmma<1>();");
  finds("void used() {\n    empty(at);", "void used() {");
  finds("shim_named_barrier(own, 256, true);", "");
  finds("shim_named_barrier(own, 256, true);", "shim_named_barrier(own, 128, true);");
  finds("shim_named_barrier(next, 256, false);", "");
  finds("shim_named_barrier(next, 256, false);", "shim_named_barrier(own + 2, 256, false);");
  finds("own + 1 == warpgroups ? 0 : own + 1", "own == 1 ? 0 : own + 1", {bf16, 3});
  finds("if (threadIdx.x / 128 == warpgroups - 1) pass_turn<warpgroups>();", "");
}

TEST_CASE("races: none in turns, and a slot that is freed before its matmuls end is detected") {
  const Kernel kernels[] = {turned_product({}), turned_product({f16, 3})};
  auto cuda = test::RacingCuda::build(kernels);
  if (!cuda) return;
  const auto said = [&](test::RacingCuda& by, const Kernel& kernel, const TurnedProduct& p) -> std::string {
    try {
      const auto found = product(p, 330, [&](auto buffers, auto dims) { by.run(kernel, buffers, dims); });
      CHECK(same_bits(found, interpreted(kernel, p, 330)));
    } catch (const test::Race& race) {
      return race.what();
    }
    return "";
  };
  CHECK(said(*cuda, kernels[0], {}) == "");
  CHECK(said(*cuda, kernels[1], {f16, 3}) == "");
  // The wait for the last matmul of a stage orders its reads before the copies to the slot.
  auto wrong = test::RacingCuda::build(
      {&kernels[0], 1}, prelude_with("  wait_wgmma<0>();\n  (touch(sums), ...);", "  (touch(sums), ...);"));
  REQUIRE(wrong);
  try {
    product({}, 330, [&](auto buffers, auto dims) { wrong->run(kernels[0], buffers, dims); });
    FAIL("a race was not found");
  } catch (const test::Race& race) {
    CHECK(std::string(race.what()).find("data race") != std::string::npos);
  }
}

TEST_CASE("turns compile to named barriers and waits for all but one group, without spills") {
  std::vector<Kernel> kernels;
  for (const TurnedProduct& p : variants) kernels.push_back(turned_product(p));
  const std::string text = cuda::emit(kernels[0], gpu_info("sm_90a"));
  INFO(text);
  for (const char* part : {"start_turns<2>();", "take_turn();", "pass_turn<2>();", "commit_wgmma();",
                           "wait_older_sums<1>(r", "pipeline.used();"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(text.find("pipeline.multiplied();") == std::string::npos);
  CHECK(cuda::emit(kernels[2], gpu_info("sm_90a")).find("take_turn") == std::string::npos);
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::ptx, nullptr);
  for (const char* part :
       {"bar.sync", "bar.arrive", "wgmma.wait_group.sync.aligned 1;", "setmaxnreg.inc.sync.aligned.u32 160;"})
    CHECK(ptx[1].code.find(part) != std::string::npos);
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
  }
}
