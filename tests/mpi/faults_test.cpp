#include "tests/mpi/runs.h"

/// If one process fails, all of them end, and the error names the rank, the place and the cause.
namespace lathe::test {

namespace {

void check_fault(int processes, const std::string& name, const std::vector<std::string>& said, double seconds = 10) {
  if (!has_mpi()) return;
  const RanMany ran = run_body(processes, name);
  INFO(ran.out << ran.err);
  CHECK(ran.ending != Ending{});
  CHECK(ran.seconds < seconds);
  for (const std::string& part : said) CHECK_THAT(ran.err, Catch::Matchers::Contains(part));
}

/// Runs `lathe train` with large batches on two processes; the address space of rank 1 is limited to `kilobytes` KiB.
[[maybe_unused]] RanMany run_limited(int kilobytes) {
  const Scratch scratch;
  Command command =
      command_of(scratch, 2, training(scratch, "run", {"--batch", "16384", "--context", "32"}) + by_data.words);
  run_before(scratch, command, "[ $rank = 1 ] && ulimit -v " + std::to_string(kilobytes));
  return run_many(scratch, command);
}

}  // namespace

TEST_CASE("mpi: running out of memory on one rank ends all ranks and reports the rank") {
  if (!has_mpi()) return;
#ifdef __SANITIZE_ADDRESS__
  WARN("SKIP: the address sanitizer takes more addresses than any limit");
#else
  using Catch::Matchers::Contains;
  static_cast<void>(run_limited(550000));  // fills the cache with compiled code
  // Fails in the arena of the step, and then before it, where MPI itself may fail.
  for (const int kilobytes : {550000, 400000}) {
    const RanMany ran = run_limited(kilobytes);
    INFO(kilobytes << ran.out << ran.err);
    CHECK(ran.ending != Ending{});
    CHECK(ran.seconds < 10);
    CHECK_THAT(ran.err, !Contains("lathe: out of memory"));
    if (kilobytes == 550000) CHECK_THAT(ran.err, Contains("rank 1 of 2 failed: ") && Contains("[arena_memory]"));
  }
#endif
}

TEST_CASE("mpi: an index out of range on one rank ends all ranks with its rank, op and line") {
  check_fault(2, "index", {"rank 1 of 2 failed: lookup:2: gather", "index 9"});
}

TEST_CASE("mpi: with find_nan, a rank that makes an infinity ends all ranks with its rank, op, line and ranges") {
  check_fault(2, "find_nan",
              {"not finite on rank 1 of 2: y (1 infinite)  [not_finite]", "at logs:2:", "%1 = log %x",
               "result: 1 infinite of 1 element; the first is -inf at [0]", "operand %x: 0 .. 0"});
}

TEST_CASE("mpi: a rank that hangs ends all ranks within the timeout with rank, op and line") {
  check_fault(2, "stop",
              {"rank 0 of 2 failed: lookup:3: all_reduce", "has made no progress for 2 seconds", "[rank_stalled]"},
              12);
}

TEST_CASE("mpi: a rank that hangs before it joins ends all ranks within the timeout") {
  check_fault(
      2, "stop_early",
      {"the start of the ranks has made no progress for 2 seconds: rank 0 waits for rank 1", "[rank_stalled]"}, 12);
}

TEST_CASE("mpi: a rank that exits ends all ranks") { check_fault(2, "exit_early", {}); }

TEST_CASE("mpi: graphs and CPUs that differ are reported before the run") {
  check_fault(2, "graphs", {"ranks differ in the graph: rank 0 has ", "rank 1 has", "[ranks_differ]"});
  check_fault(2, "cpus", {"ranks differ in the target CPU", "x86-64-v2", "x86-64-v3", "[ranks_differ]"});
}

TEST_CASE("mpi: rejects a mesh of another size, and a second initialization") {
  check_fault(2, "other_mesh", {"the mesh data=3 has 3 processes, and 2 run (", "[mesh_processes]"});
  check_fault(2, "once", {"[mpi_once]"});
}

}  // namespace lathe::test
