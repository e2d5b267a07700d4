#include "tests/mpi/mpirun.h"

/// Collectives over MPI, compared with those between threads of one process.
namespace lathe::test {

TEST_CASE("mpi: every collective matches the same collective within one process") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(3, "collectives");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "138 collectives are the same\n");
}

TEST_CASE("mpi: training steps match the bits of threads within one process") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "steps");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "the same bits\n");
}

TEST_CASE("mpi: GPU collectives match those within one process, for any order of streams") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(3, "gpu_collectives");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "138 collectives are the same\n");
}

TEST_CASE("mpi: GPU training steps match the bits of threads within one process") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "gpu_steps");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "the same bits\n");
}

TEST_CASE("mpi: large messages are sent in chunks") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "pieces");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "56 of 56\n56 of 56\n56 of 56\n56 of 56\n");
}

}  // namespace lathe::test
