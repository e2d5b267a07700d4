#include <algorithm>
#include <csignal>

#include "tests/mpi/gpus.h"

/// `lathe train --target cuda` on several processes with mock GPUs, started as users do.
namespace lathe::test {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const MeshOfTest by_states{2, by_data.words + Words{"--states", "data"}};

/// A few steps of a small model.
Words few_steps(const Scratch& scratch, const std::string& run, const Words& more = {}) {
  return training(
      scratch, run,
      with_usual(more, {{"--layers", "1"}, {"--context", "4"}, {"--steps", "4"}, {"--evaluate-every", "2"}}));
}

/// Runs the same on two processes that fail, and returns their messages. Starting the processes takes most of the
/// time.
std::string failing(const MockMachine& machine, const Words& more = {}) {
  const Scratch scratch;
  const RanMany ran = run_on_gpus(scratch, 2, few_steps(scratch, "run", more) + by_states.words, machine);
  CHECK(ran.ending != Ending{});
  CHECK(ran.seconds < 30);
  CHECK(ran.err.find("mock driver") == std::string::npos);
  return ran.err;
}

void check_losses_on(const MeshOfTest& mesh) {
  if (!has_mock_gpus()) return;
  const Scratch scratch;
  run_to_end(scratch, 0, few_steps(scratch, "one"));
  const RanMany ran =
      run_on_gpus(scratch, mesh.processes, few_steps(scratch, "many") + mesh.words, {.gpus = mesh.processes});
  INFO(ran.out << ran.err);
  REQUIRE(ran.ending == Ending{});
  check_losses(scratch, "many", "one");
  CHECK(ran.err.find("mock driver") == std::string::npos);
}

/// Compiles the kernels, so that later tests do not measure that time.
void build_kernels() {
  const Scratch scratch;
  const RanMany ran = run_on_gpus(scratch, 2, few_steps(scratch, "run") + by_states.words);
  INFO(ran.out << ran.err);
  REQUIRE(ran.ending == Ending{});
}

}  // namespace

TEST_CASE("mpi: lathe train on two GPUs matches the losses of one process on a CPU") { check_losses_on(by_states); }

TEST_CASE("mpi: lathe train on two by two GPUs matches the losses of one process on a CPU") {
  check_losses_on(by_both);
}

TEST_CASE("mpi: the same GPUs give the same bits, whether a process sees all or one, for any order of streams") {
  if (!has_mock_gpus()) return;
  const Scratch scratch;
  int number = 0;
  for (const char* before :
       {"", "export CUDA_VISIBLE_DEVICES=$rank", "[ $rank = 1 ] && export MOCK_CUDA_ORDER=early"}) {
    const std::string run = "run-" + std::to_string(number++);
    const RanMany ran = run_on_gpus(scratch, 2, few_steps(scratch, run) + by_states.words, {.before = before});
    INFO(before << ran.out << ran.err);
    REQUIRE(ran.ending == Ending{});
    check_same_bits(scratch, run, "run-0");
  }
}

TEST_CASE("mpi: a missing GPU requirement on one rank ends all ranks with the rank and a remedy") {
  if (!has_mock_gpus()) return;
  build_kernels();
  CHECK_THAT(failing({.before = "[ $rank = 1 ] && export MOCK_NCCL_VERSION=22103"}),
             Contains("ranks differ in the version of NCCL: rank 0 has 2.27.3, rank 1 has 2.21.3  [ranks_differ]") &&
                 Contains("install the same one for all of them"));
  // A library of that name that is not NCCL. A real one may be on the dynamic linker's path.
  const std::string other = "mkdir -p other && ln -sf \"$CUDA_HOME\"/libcuda.so.1 other/libnccl.so.2 && ";
  CHECK_THAT(failing({.before = "[ $rank = 1 ] && " + other + "export CUDA_PATH=$PWD/other"}),
             Contains("rank 1 of 2 failed: ") && Contains("has no ncclGetVersion  [nccl_missing]") &&
                 Contains("install NCCL 2.14 or newer"));
  CHECK_THAT(failing({.before = "[ $rank = 1 ] && export CUDA_VISIBLE_DEVICES="}),
             Contains("rank 1 of 2 failed: ") && Contains("[no_device]"));
  CHECK_THAT(failing({.gpus = 1}),
             Contains("rank 1 has no GPU of its own: 2 ranks see the same 1 GPU  [rank_devices]") &&
                 Contains("start at most 1 rank on such a machine"));
  CHECK_THAT(failing({.before = "[ $rank = 1 ] && export MOCK_CUDA_BYTES=50000"}),
             Contains("rank 1 of 2 failed: ") && Contains("[out_of_memory]\n  make the batch smaller") &&
                 Contains("\n  memory: arena"));
}

TEST_CASE("mpi: failed or missing messages between GPUs end all ranks with the rank, op and line") {
  if (!has_mock_gpus()) return;
  build_kernels();
  CHECK_THAT(failing({.before = "export MOCK_NCCL_FAULT='1 5 6'"}),
             Contains("rank 1 of 2 failed: between GPUs: remote process exited or there was a network error  "
                      "[nccl_failed]") &&
                 Contains("in the collective of %") && Contains("over data, gradient of gpt.cpp:"));
  CHECK_THAT(failing({.before = "export MOCK_NCCL_FAULT='1 5 0'"}, {"--watchdog", "2"}),
             Contains("rank 0 of 2 failed: gradient of gpt.cpp:") &&
                 Contains("over data has made no progress for 2 seconds: rank 0 waits for position 1") &&
                 Contains("[rank_stalled]"));
}

TEST_CASE("mpi: killing a GPU rank ends all ranks, and the run resumes from its checkpoint") {
  if (!has_mock_gpus()) return;
  build_kernels();
  const Scratch scratch;
  const Words usual = by_states.words + Words{"--save-every", "2"};
  {
    Endless run(scratch, gpu_command(scratch, 2, few_steps(scratch, "run", {"--steps", "1000000"}) + usual));
    REQUIRE(::kill(run.processes().back(), SIGKILL) == 0);
    run.check_ends(10);
    // OpenMPI names the rank, MPICH the process.
    CHECK_THAT(scratch.read("out") + scratch.read("err"),
               Contains("process rank ") || Contains("KILLED BY SIGNAL: 9"));
  }
  const Words more{"--steps", std::to_string(newest(scratch, "run").meta.step + 2)};
  const RanMany ran = run_on_gpus(scratch, 2, few_steps(scratch, "run", more) + by_states.words);
  INFO(ran.out << ran.err);
  CHECK(ran.ending == Ending{});
  CHECK_THAT(ran.out, Contains("resuming after step "));
}

TEST_CASE("mpi: a GPU rank that hangs ends all ranks within the watchdog timeout") {
  if (!has_mock_gpus()) return;
  build_kernels();
  const Scratch scratch;
  const Words words = few_steps(scratch, "run", {"--steps", "1000000", "--save-every", "2"}) + by_states.words;
  Endless run(scratch, gpu_command(scratch, 2, words + Words{"--watchdog", "3"}));
  REQUIRE(::kill(run.processes().back(), SIGSTOP) == 0);
  run.check_ends(13);
  const std::string err = scratch.read("err");
  INFO(err);
  CHECK_THAT(err, Contains("rank 0 of 2 failed: ") && Contains("3 seconds") && Contains("[rank_stalled]"));
}

}  // namespace lathe::test
