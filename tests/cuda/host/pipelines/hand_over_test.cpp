#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/handed_sums.h"

/// The CUDA text of hand-overs between warpgroups, on the host and compiled by NVRTC.
using namespace lathe;
using namespace lathe::kernel;
using test::HandedSums;
using test::HostCuda;
using test::Race;
using test::RacingCuda;

namespace {

template <class Run>
std::vector<float> results(const HandedSums& k, const Run& run) {
  std::vector<std::uint16_t> x = test::handed_operand(k);
  std::vector<float> y(static_cast<std::size_t>(k.turns * HandedSums::consumers), -1);
  const BoundBuffer buffers[] = {{x.data(), static_cast<std::int64_t>(x.size())},
                                 {y.data(), static_cast<std::int64_t>(y.size())}};
  run(buffers);
  return y;
}

/// A mistake in the text of lathe.cuh.
struct Change {
  const char *text, *by;
};
/// Fibers do not find it: the consumers wait for copies, which arrive only when all other threads wait too.
constexpr Change too_early = {"wait_finished() const { wait_barrier(barriers + givers + number, round ^ 1); }",
                              "wait_finished() const {}"};
constexpr Change changes[] = {
    {"if (number >= givers) return false;\n    wait_barrier(barriers + number, round);",
     "if (number >= givers) return false;"},
    {"arrive_for_warp(barriers + givers + number);", "arrive_for_warp(barriers + number);"},
    {"arrive_for_warp(barriers + number);\n    round ^= 1;", "round ^= 1;"},
    {"arrive_for_warp(barriers + number);\n    round ^= 1;", "arrive_for_warp(barriers + number);"},
    {"end_turn() { round ^= 1; }", "end_turn() {}"},
    {"init_barrier(barriers + i, warps);", "init_barrier(barriers + i, 1);"},
    {"number += finishers;", "number += finishers + 1;"}};

std::string changed(const Change& change) {
  std::string text = cuda::prelude();
  const auto at = text.find(change.text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, std::string_view(change.text).size(), change.by);
}

}  // namespace

TEST_CASE("hand-overs on the host give the interpreter's results, in any order of the threads") {
  const HandedSums cases[] = {{}, {.finishers = 256}, {.together = true}};
  const Kernel kernels[] = {cases[0].build(), cases[1].build(), cases[2].build()};
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (const std::size_t i : {0, 1, 2})
    for (std::uint64_t seed = 1; seed < 9; ++seed)
      CHECK(results(cases[i], [&](std::span<const BoundBuffer> buffers) {
              host->run(kernels[i], buffers, {}, seed);
            }) == test::handed_result(cases[i]));
}

TEST_CASE("the host detects errors in the text of hand-overs") {
  const HandedSums k{.turns = 6};
  const Kernel kernel = k.build();
  for (const Change& change : changes) {
    INFO(change.by << " for " << change.text);
    const auto host = HostCuda::build({&kernel, 1}, changed(change));
    if (!host) return;
    bool found = false;
    for (std::uint64_t seed = 1; seed < 9 && !found; ++seed) try {
        found = results(k, [&](std::span<const BoundBuffer> buffers) { host->run(kernel, buffers, {}, seed); }) !=
                test::handed_result(k);
      } catch (const InternalError&) {  // threads wait forever
        found = true;
      }
    CHECK(found);
  }
}

TEST_CASE("races: none in hand-overs, and a missing wait is detected") {
  const HandedSums k;
  const Kernel kernel = k.build();
  auto cuda = RacingCuda::build({&kernel, 1});
  if (!cuda) return;
  CHECK(results(k, [&](std::span<const BoundBuffer> buffers) { cuda->run(kernel, buffers, {}); }) ==
        test::handed_result(k));
  const auto found = [&](const Change& change) {
    auto wrong = RacingCuda::build({&kernel, 1}, changed(change));
    REQUIRE(wrong);
    try {
      results(k, [&](std::span<const BoundBuffer> buffers) { wrong->run(kernel, buffers, {}); });
    } catch (const Race& race) {
      return std::string(race.what());
    } catch (const InternalError&) {  // threads wait forever
      return std::string("no end");
    }
    return std::string();
  };
  CHECK_THAT(found(too_early), Catch::Contains("data race"));
  CHECK_FALSE(found(changes[0]).empty());
}

TEST_CASE("hand-overs print as three roles, and compile without spills") {
  const Kernel kernel = HandedSums().build();
  const std::string text = cuda::emit(kernel, gpu_info("sm_90a"));
  INFO(text);
  for (const char* part :
       {"HandOver<2, 1> handed = start_hand_over<2, 1>(pipeline_barriers + 4, 384);", "if (threadIdx.x >= 384) {",
        "for (handed.start_turn(); handed.goes_on(); handed.finished()) {", "if (threadIdx.x >= 256) {",
        "if (threadIdx.x != 256) return;", "handed.wait_finished();", "handed.given();"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(cuda::mapping_of(kernel, gpu_info("sm_90a")).block_size() == HandedSums().threads());
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  for (const auto& k :
       cuda::compile_kernels(*nvrtc, {&kernel, 1}, cuda::Arch::named("sm_90a"), cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
  }
}
