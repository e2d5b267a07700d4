#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/adding_blocks.h"

/// The CUDA text of an order between blocks: on the host, where blocks run in turns, under ThreadSanitizer, and
/// compiled by NVRTC.
using namespace lathe;
using namespace lathe::kernel;
using test::AddingBlocks;
using test::HostCuda;
using test::Race;
using test::RacingCuda;
using Mistake = AddingBlocks::Mistake;

namespace {

std::string changed(std::string_view text, std::string_view by) {
  std::string prelude = cuda::prelude();
  const auto at = prelude.find(text);
  REQUIRE(at != std::string::npos);
  return prelude.replace(at, text.size(), by);
}

}  // namespace

TEST_CASE("block order on the host gives the interpreter's bits, in any order of the blocks") {
  for (const bool by_memory : {false, true}) {
    const AddingBlocks k{.by_memory = by_memory};
    const Kernel kernel = k.build();
    const auto host = HostCuda::build({&kernel, 1});
    if (!host) return;
    for (std::uint64_t seed = 1; seed < 33; ++seed)
      CHECK(test::run_ordered(k, [&](std::span<const BoundBuffer> buffers) {
              host->run(kernel, buffers, {}, seed);
            }) == test::ordered_result(k));
  }
}

TEST_CASE("the host detects errors in the text of a block order") {
  const auto found = [](const AddingBlocks& k, const std::string& prelude) {
    const Kernel kernel = k.build();
    const auto host = HostCuda::build({&kernel, 1}, prelude);
    if (!host) return true;
    for (std::uint64_t seed = 1; seed < 9; ++seed) try {
        if (test::run_ordered(k, [&](std::span<const BoundBuffer> buffers) {
              host->run(kernel, buffers, {}, seed);
            }) != test::ordered_result(k))
          return true;
      } catch (const InternalError&) {  // blocks wait forever
        return true;
      }
    return false;
  };
  CHECK(found({.mistake = Mistake::later_first}, cuda::prelude()));
  // Blocks that start in another order than that of their indices fill the machine and wait.
  CHECK(found({.blocks = 24}, changed("atomicAdd(started, 1)", "i32(blockIdx.x)")));
  CHECK(found({}, changed("shim_wait_blocks(passed, i32(rank));", "if (rank == 0) shim_wait_blocks(passed, 0);")));
  CHECK(found({}, changed("shim_pass_block(passed);", "")));
}

TEST_CASE("races: none in a block order, and a missing wait, end or barrier is detected") {
  const auto report = [](const AddingBlocks& k, const std::string& prelude) -> std::optional<std::string> {
    const Kernel kernel = k.build();
    auto cuda = RacingCuda::build({&kernel, 1}, prelude);
    if (!cuda) return std::nullopt;
    try {
      const auto found =
          test::run_ordered(k, [&](std::span<const BoundBuffer> buffers) { cuda->run(kernel, buffers, {}); });
      CHECK(found == test::ordered_result(k));
    } catch (const Race& race) {
      return race.what();
    } catch (const InternalError&) {
      return "no end";
    }
    return "";
  };
  const auto clean = report({}, cuda::prelude());
  if (!clean) return;
  CHECK(*clean == "");
  CHECK(*report({.by_memory = true}, cuda::prelude()) == "");
  const auto race = Catch::Contains("data race");
  CHECK_THAT(*report({.mistake = Mistake::other_turn}, cuda::prelude()), race);
  CHECK_THAT(*report({}, changed("shim_wait_blocks(passed, i32(rank));", "")), race);
  CHECK_THAT(*report({}, changed("  warpgroup_barrier();\n  if (threadIdx.x % 128 != 0) return;",
                                 "  if (threadIdx.x % 128 != 0) return;")),
             race);
  CHECK_THAT(*report({}, changed("#endif\n  }\n  warpgroup_barrier();", "#endif\n  }")), race);
}

TEST_CASE("a block order prints as a number of the block and a wait, and compiles to acquire and release") {
  const Kernel kernel = AddingBlocks{.by_memory = true}.build();
  const std::string text = cuda::emit(kernel, gpu_info("sm_90a"));
  INFO(text);
  for (const char* part : {"if (const i32 i0 = i32(next_block(turns, block_number)); i0 < 7) {",
                           "wait_block_turn(&turns[", "pass_block_turn(&turns[", "add_in_turn(&y["})
    CHECK(text.find(part) != std::string::npos);
  CHECK(cuda::mapping_of(kernel, gpu_info("sm_90a")).shared_bytes == 16);
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  for (const auto& k :
       cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named("sm_90a"), cuda::Output::ptx, nullptr))
    for (const char* part : {"ld.acquire.gpu.global.s32", "red.release.gpu.global.add.s32",
                             "red.relaxed.gpu.global.add.v4.f32", "atom.global.add.u32"})
      CHECK(k.code.find(part) != std::string::npos);
}
