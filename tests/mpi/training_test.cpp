#include <algorithm>
#include <csignal>

#include "tests/mpi/runs.h"

/// `lathe train` on several processes, started as users do.
namespace lathe::test {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A training run without an end, on two processes.
Words endless(const Scratch& scratch) {
  return training(scratch, "run", {"--steps", "1000000", "--save-every", "5"}) + by_data.words;
}

}  // namespace

TEST_CASE("mpi: lathe train on several processes matches the losses of one") {
  if (!has_mpi()) return;
  const Scratch scratch;
  run_to_end(scratch, 0, training(scratch, "one", {"--evaluate-every", "5"}));
  int number = 0;
  for (const MeshOfTest& mesh : {by_data, by_both, by_parameters, by_ring}) {
    const std::string run = "many-" + std::to_string(number++);
    const RanMany ran =
        run_many(scratch, mesh.processes, training(scratch, run, {"--evaluate-every", "5"}) + mesh.words);
    INFO(ran.out << ran.err);
    REQUIRE(ran.ending == Ending{});
    check_losses(scratch, run, "one");
    CHECK(fs::exists(scratch.path(run + "/loss.svg")));
    // Only one process prints.
    CHECK(ran.out.find("over the whole validation text") != ran.out.npos);
    CHECK(ran.out.find("over the whole validation text") == ran.out.rfind("over the whole validation text"));
  }
}

TEST_CASE("mpi: any mesh resumes from the checkpoint of any other") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const Words first{"--steps", "6", "--evaluate-every", "4"}, second{"--steps", "12", "--evaluate-every", "4"};
  run_to_end(scratch, 0, training(scratch, "one", first));
  fs::copy(scratch.path("one"), scratch.path("from-one"), fs::copy_options::recursive);
  run_to_end(scratch, 0, training(scratch, "one", second));
  run_to_end(scratch, by_both.processes, training(scratch, "from-one", second) + by_both.words);
  check_losses(scratch, "from-one", "one");
  run_to_end(scratch, by_parameters.processes, training(scratch, "many", first) + by_parameters.words);
  fs::copy(scratch.path("many"), scratch.path("to-one"), fs::copy_options::recursive);
  const RanMany ran = run_many(scratch, by_model.processes, training(scratch, "many", second) + by_model.words);
  INFO(ran.out << ran.err);
  REQUIRE(ran.ending == Ending{});
  CHECK_THAT(ran.out, Contains("resuming with processes=--mesh model=2 --split h:model, previously --mesh data=4"));
  check_losses(scratch, "many", "one");
  run_to_end(scratch, 0, training(scratch, "to-one", second));
  check_losses(scratch, "to-one", "one");
}

TEST_CASE("mpi: the same mesh resumes to the same bits, and samples match one process") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const Words words = training(scratch, "run", {"--save-every", "6"}) + by_both.words;
  run_to_end(scratch, by_both.processes, words);
  fs::copy(scratch.path("run"), scratch.path("whole"), fs::copy_options::recursive);
  forget_newest(scratch, "run");
  run_to_end(scratch, by_both.processes, words);
  check_same_bits(scratch, "run", "whole");
  // A run with no steps left generates its sample.
  const Words sampled{"--sample", "40"};
  const RanMany many = run_many(scratch, by_both.processes, training(scratch, "run", sampled) + by_both.words);
  INFO(many.out << many.err);
  REQUIRE(many.ending == Ending{});
  const RanMany one = run_many(scratch, 0, training(scratch, "whole", sampled));
  REQUIRE(one.ending == Ending{});
  const auto sample = [](const std::string& out) { return out.substr(out.find("--- a sample")); };
  CHECK(sample(many.out).size() > 40);
  CHECK(sample(many.out) == sample(one.out));
}

TEST_CASE("mpi: killing a rank of lathe train ends all ranks, and the run resumes from its checkpoint") {
  if (!has_mpi()) return;
  const Scratch scratch;
  {
    Endless run(scratch, endless(scratch));
    REQUIRE(::kill(run.processes().back(), SIGKILL) == 0);
    run.check_ends(10);
    // MPICH prints it on standard output.
    CHECK_THAT(scratch.read("out") + scratch.read("err"), Contains("ignal 9") || Contains("illed"));
  }
  const RanMany ran = run_many(
      scratch, 2,
      training(scratch, "run", {"--steps", std::to_string(newest(scratch, "run").meta.step + 2)}) + by_data.words);
  INFO(ran.out << ran.err);
  CHECK(ran.ending == Ending{});
  CHECK_THAT(ran.out, Contains("resuming after step "));
}

TEST_CASE("mpi: a rank of lathe train that hangs ends all ranks within the watchdog timeout") {
  if (!has_mpi()) return;
  const Scratch scratch;
  Endless run(scratch, endless(scratch) + Words{"--watchdog", "2"});
  REQUIRE(::kill(run.processes().back(), SIGSTOP) == 0);
  run.check_ends(12);
  const std::string err = scratch.read("err");
  INFO(err);
  CHECK_THAT(err, Contains("rank 0 of 2 failed: ") && Contains("2 seconds") && Contains("[rank_stalled]"));
}

TEST_CASE("mpi: a signal to any rank of lathe train stops all ranks after a step, with a checkpoint") {
  if (!has_mpi()) return;
  const Scratch scratch;
  Endless run(scratch, endless(scratch));
  REQUIRE(::kill(run.processes().back(), SIGTERM) == 0);
  run.check_ends(10);
  const std::string out = scratch.read("out");
  CHECK_THAT(out, Contains("Stopped after step " + std::to_string(newest(scratch, "run").meta.step)));
}

TEST_CASE("mpi: lathe train without mpirun explains how to start processes") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const RanMany ran = run_many(scratch, 0, training(scratch, "run") + by_both.words);
  CHECK(ran.ending == Ending{.status = 1});
  CHECK_THAT(ran.err,
             Contains("the mesh data=2,model=2 has 4 processes, and 1 run") &&
                 Contains("mpirun -n 4 lathe train --mesh data=2,model=2 --split B:data,h:model --states data") &&
                 Contains("[mesh_processes]"));
}

TEST_CASE("mpi: an error on all ranks of lathe train is printed once") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const RanMany ran = run_many(scratch, 2, training(scratch, "run") + Words{"--mesh", "data=2", "--split", "b:data"});
  INFO(ran.err);
  CHECK(ran.ending != Ending{});
  CHECK_THAT(ran.err, Contains("rank 0 of 2 failed: ") && Contains("[shard_name]"));
  CHECK(ran.err.find("[shard_name]") == ran.err.rfind("[shard_name]"));
}

TEST_CASE("mpi: lathe train with too few GPUs, one per process, reports what is missing") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const RanMany ran = run_many(scratch, 2, training(scratch, "run", {"--target", "cuda"}) + by_data.words);
  if (ran.ending == Ending{}) {
    WARN("SKIP: there are two GPUs");
    return;
  }
  CHECK_THAT(ran.err, Contains("rank 0 of 2 failed: ") &&
                          (Contains("[driver_missing]") || Contains("[nvrtc_missing]") || Contains("[no_device]") ||
                           Contains("[nccl_missing]") || Contains("[rank_devices]")));
}

TEST_CASE("mpi: a missing plugin is an error with the searched paths") {
  const Scratch scratch;
  const RanMany ran = run_many(
      scratch, 0,
      training(scratch, "run", {"--mesh", "data=2", "--split", "B:data", "--mpi", "nowhere/liblathe_mpi.so"}));
  CHECK(ran.ending == Ending{.status = 1});
  CHECK_THAT(ran.err, Contains("nowhere/liblathe_mpi.so") && Contains("[mpi_plugin]") && Contains("install an MPI"));
}

TEST_CASE("mpi: a plugin of another Lathe version is an error with both versions") {
  const Scratch scratch;
  const RanMany ran = run_many(
      scratch, 0, training(scratch, "run", {"--mesh", "data=2", "--split", "B:data", "--mpi", LATHE_MPI_OTHER}));
  CHECK(ran.ending == Ending{.status = 1});
  CHECK_THAT(ran.err, Contains("its interface has number 1000000") && Contains("[mpi_plugin]"));
}

}  // namespace lathe::test
