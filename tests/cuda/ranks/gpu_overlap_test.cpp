#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/cuda/ranks/mock_ranks.h"
#include "tests/ranks/support.h"

/// Communication that overlaps with launches, checked in the mock's logs.
namespace lathe::test {

namespace {

using Order = MockDriver::Order;
using Log = std::vector<MockDriver::Logged>;

/// Returns the number of compute launches before each collective. A collective ends with its event.
std::vector<int> launches_before(const Log& log) {
  const auto first_that = [&](std::string_view start) {
    return std::ranges::find_if(log, [&](const auto& work) { return work.what.starts_with(start); });
  };
  REQUIRE(first_that("nccl") != log.end());
  const auto computing = first_that("launch")->stream, exchanging = first_that("nccl")->stream;
  REQUIRE(computing != exchanging);
  std::vector<int> before;
  int launches = 0;
  bool is_within = false;
  for (const auto& [stream, what] : log) {
    if (stream == computing) launches += what.starts_with("launch") ? 1 : 0;
    if (stream != exchanging) continue;
    if (what.starts_with("nccl") && !std::exchange(is_within, true)) before.push_back(launches);
    if (what == "record") is_within = false;
  }
  return before;
}

struct Seen {
  Program program;
  Log put, run;
};

/// Runs one step of GPT-2 on two GPUs, in buckets of at most `bucket_bytes`, and returns the log of rank 0.
Seen one_step(Order order, std::int64_t bucket_bytes) {
  MockRanks gpus(2, order);
  const ir::Graph step = small_step(f32, 0.5, 2);
  Seen seen;
  run_ranks(2, [&](int rank, const MakeCommunicator& make) {
    const auto ranks = std::make_shared<Ranks>(make, shard::Mesh({{"data", 2}}), RanksOptions{.timeout = 60});
    CompileOptions options = gpus.options(ranks);
    options.split = {{"B", "data"}};
    options.lower.bucket_bytes = bucket_bytes;
    Executable executable = compile(step, options);
    for (const Program::Slot& slot : program_of(executable).states)
      executable.parameters().set(slot.name, HostTensor(slot.dtype, slot.shape.evaluate({})));
    (void)executable.run({{"tokens", tokens_of(0, 4)}});
    if (rank != 0) return;
    seen = {program_of(executable), gpus.gpu(0).driver().put_log, gpus.gpu(0).driver().run_log};
  });
  CHECK(gpus.faults() == "");
  return seen;
}

}  // namespace

TEST_CASE("GPU ranks: collectives are enqueued on their stream before the backward pass ends") {
  const Seen seen = one_step(Order::early, 3000);
  const auto last = static_cast<int>(seen.program.launches.size());
  std::vector<int> starts;
  int beside = 0;
  for (const Collective& collective : seen.program.collectives) {
    starts.push_back(collective.start);
    beside += collective.done > collective.start ? 1 : 0;
  }
  REQUIRE(starts.size() > 4);
  CHECK(beside > 4);
  CHECK(starts.front() < last / 2);
  // The host enqueues each collective right after the launches that it needs.
  CHECK(launches_before(seen.put) == starts);
  // If the communication stream runs as early as possible, each collective also runs there.
  CHECK(launches_before(seen.run) == starts);
}

TEST_CASE("GPU ranks: only launches that need a collective wait for it") {
  const Seen seen = one_step(Order::late, 3000);
  // If it runs as late as possible, each collective runs right before the launch that needs it.
  std::vector<int> last_moments;
  for (std::size_t e = 0; e < seen.program.collectives.size(); ++e) {
    int done = seen.program.collectives[e].done;
    for (std::size_t later = e; later < seen.program.collectives.size(); ++later)
      done = std::min(done, seen.program.collectives[later].done);  // they run in order
    last_moments.push_back(done);
  }
  CHECK(launches_before(seen.run) == last_moments);
}

}  // namespace lathe::test
