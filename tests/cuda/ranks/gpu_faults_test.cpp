#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "runtime/cuda/ranks/rank_platform.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/cuda/ranks/mock_ranks.h"
#include "tests/ranks/support.h"

/// A failure on one GPU ends all ranks, and the error names the rank, the place and the cause.
namespace lathe::test {

namespace {

/// Returns the errors of `count` ranks; the first rank has a timeout of `timeout_of_first` seconds.
std::vector<RankFailure> failures(int count, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                                  double timeout_of_first = 60) {
  return rank_failures(count, [&](int rank, const MakeCommunicator& make) {
    body(std::make_shared<Ranks>(make, shard::Mesh({{"m", count}}),
                                 RanksOptions{.timeout = rank == 0 ? timeout_of_first : 60}));
  });
}

/// Runs the lookup `times` times on two ranks, with `last_index` as the last index on the second one.
std::vector<RankFailure> run_lookup(MockRanks& gpus, std::int64_t last_index, double timeout_of_first = 60,
                                    int times = 1) {
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  return failures(
      2,
      [&](const auto& ranks) {
        Executable executable = compile(graph, gpus.options(ranks));
        const std::int64_t last = ranks->rank() == 1 ? last_index : 2;
        for (int i = 0; i < times; ++i) (void)executable.run(lookup_arguments(last));
      },
      timeout_of_first);
}

void check_says(const RankFailure& failure, const std::string& label, const std::vector<std::string>& parts) {
  INFO(failure.text);
  CHECK(failure.label == label);
  for (const std::string& part : parts) CHECK_THAT(failure.text, Catch::Matchers::Contains(part));
}

std::string refused(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("GPU ranks: a run without faults reports none") {
  MockRanks gpus(2);
  for (const RankFailure& failure : run_lookup(gpus, 3, 60, 3)) CHECK(failure.text == "");
  CHECK(gpus.faults() == "");
}

TEST_CASE("GPU ranks: a missing message is an error with rank, op and line") {
  MockRanks gpus(2);
  gpus.control().fault = {.rank = 1, .after = 2, .code = 0};
  const auto found = run_lookup(gpus, 2, 0.5, 3);
  check_says(found[0], "rank_stalled",
             {"lookup:3: all_reduce", "over m has made no progress for 0.5 seconds", "rank 0 waits for position 1"});
  check_says(found[1], "rank_failed", {"rank 0 of 2 failed", "all_reduce"});
  CHECK(gpus.control().stuck == 4);  // both phases of the all_reduce, on both ranks
  CHECK(gpus.control().aborted == 2);
  CHECK(gpus.faults() == "");
}

TEST_CASE("GPU ranks: a failed message ends all ranks with the NCCL error") {
  for (const int after : {0, 1, 3}) {
    MockRanks gpus(2);
    gpus.control().fault = {.rank = 1, .after = after, .code = 6};
    const auto found = run_lookup(gpus, 2, 60, 3);
    check_says(found[1], "nccl_failed",
               {"remote process exited or there was a network error", "\n  in the collective of %",
                " all_reduce over m, lookup:3"});
    check_says(found[0], "rank_failed", {"rank 1 of 2 failed", "remote process exited"});
    CHECK(gpus.faults() == "");
  }
}

TEST_CASE("GPU ranks: an index out of range on one rank ends all ranks with its rank, op and line") {
  MockRanks gpus(2);
  const auto found = run_lookup(gpus, 9, 60, 2);
  check_says(found[1], "index_range", {"lookup:2: gather", "index 9"});
  check_says(found[0], "rank_failed", {"rank 1 of 2 failed", "lookup:2: gather"});
  CHECK(gpus.faults() == "");
}

TEST_CASE("GPU ranks: a failed allocation on one rank ends all ranks") {
  MockRanks gpus(2);
  gpus.gpu(1).driver().memory_bytes = 64;
  const auto found = run_lookup(gpus, 2);
  check_says(found[1], "out_of_memory", {});
  check_says(found[0], "rank_failed", {"rank 1 of 2 failed"});
  CHECK(gpus.faults() == "");
}

TEST_CASE("GPU ranks: after any driver call fails on one rank, all ranks end and leak nothing") {
  int failed = 0, at = 0;
  for (bool reached = true; reached; ++at) {
    MockRanks gpus(2, at % 2 == 0 ? MockDriver::Order::late : MockDriver::Order::early);
    MockDriver& driver = gpus.gpu(1).driver();
    driver.fail_at = at;
    const auto found = run_lookup(gpus, 2, 60, 2);
    reached = driver.calls > at;
    INFO(at << ": " << found[0].text << found[1].text);
    // A rank that fails at the very end fails alone.
    CHECK((found[0].label.empty() || found[0].label == "rank_failed"));
    CHECK((found[0].label.empty() || !found[1].label.empty()));
    CHECK(gpus.faults() == "");
    failed += found[1].label.empty() ? 0 : 1;
  }
  CHECK(failed > 40);
  CHECK(failed < at);
}

TEST_CASE("GPU ranks: ranks are assigned GPUs in turn, whether each sees all GPUs or only its own") {
  const auto devices = [](const std::vector<std::vector<std::string>>& seen) {
    std::vector<int> found(seen.size(), -1);
    const auto failed = failures(static_cast<int>(seen.size()), [&](const auto& ranks) {
      MockDriver driver;
      driver.device_ids = seen[static_cast<std::size_t>(ranks->rank())];
      found[static_cast<std::size_t>(ranks->rank())] = cuda::device_of_rank(*ranks, driver);
    });
    return std::pair(found, failed);
  };
  CHECK(devices({{"a", "b"}, {"a", "b"}}).first == std::vector{0, 1});
  CHECK(devices({{"a"}, {"b"}}).first == std::vector{0, 0});
  CHECK(devices({{"a", "b"}, {"a", "b"}, {"c", "d"}, {"c", "d"}}).first == std::vector{0, 1, 0, 1});
  for (const RankFailure& failure : devices({{"a", "b"}, {"a", "b"}, {"a", "b"}}).second)
    check_says(failure, "rank_devices",
               {"rank 2 has no GPU of its own: 3 ranks see the same 2 GPUs", "at most 2 ranks on such a machine"});
  for (const RankFailure& failure : devices({{"a"}, {"a"}}).second)
    check_says(failure, "rank_devices", {"2 ranks see the same 1 GPU  [", "at most 1 rank on such a machine"});
}

TEST_CASE("GPU ranks: rejects two ranks on one GPU, and a GPU without ranks") {
  MockRanks gpus(2);
  gpus.gpu(1).driver().device_ids = gpus.gpu(0).driver().device_ids;
  for (const RankFailure& failure : run_lookup(gpus, 2))
    check_says(failure, "rank_devices", {"ranks 0 and 1 have the same GPU"});
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto alone = failures(2, [&](const auto& ranks) {
    CompileOptions options = gpus.gpu(ranks->rank()).options();
    options.ranks = ranks;
    (void)compile(graph, options);
  });
  for (const RankFailure& failure : alone) check_says(failure, "compile_options", {"does not belong to the ranks"});
}

TEST_CASE("GPU ranks: mixed CPU and GPU ranks are detected before they communicate") {
  MockRanks gpus(2);
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto found = failures(2, [&](const auto& ranks) {
    CompileOptions options = gpus.options(ranks);
    if (ranks->rank() == 1) options.target = Target::host();
    (void)compile(graph, options);
  });
  for (const RankFailure& failure : found)
    check_says(failure, "ranks_differ", {"the target: rank 0 has a GPU, rank 1 has a CPU"});
}

TEST_CASE("GPU ranks: searches for NCCL in the usual places, and reports a missing or outdated library") {
  const auto names = cuda::nccl_candidates({"/opt/cuda"});
  CHECK(names.front() == "/opt/cuda/libnccl.so.2");
  CHECK(std::ranges::find(names, "libnccl.so.2") != names.end());
  CHECK_THAT(refused([] { cuda::Nccl({"/nowhere/libnccl.so.2"}); }),
             Catch::Matchers::Contains("tried /nowhere/libnccl.so.2  [nccl_missing]"));
  CHECK_THAT(refused([] { cuda::Nccl({"libm.so.6"}); }), Catch::Matchers::Contains("has no ncclGetVersion"));
  CHECK(cuda::Nccl({mock_nccl_file()}).version() == "2.27.3");
}

TEST_CASE("GPU ranks: the installed NCCL has the required functions") {
  std::unique_ptr<cuda::Nccl> nccl;
  try {
    nccl = std::make_unique<cuda::Nccl>(cuda::nccl_candidates());
  } catch (const UserError& error) {
    CHECK(error.label() == "nccl_missing");
    WARN("SKIP: no NCCL here");
    return;
  }
  CHECK(nccl->version().starts_with("2."));
}

}  // namespace lathe::test
