#include "tests/mpi/mpirun.h"

/// Collectives over MPI, compared with those between threads of one process.
namespace lathe::test {

TEST_CASE("mpi: every collective is that within one program") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(3, "collectives");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "138 collectives are the same\n");
}

TEST_CASE("mpi: training steps have the bits of those within one program") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "steps");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "the same bits\n");
}

TEST_CASE("mpi: collectives between GPUs are those within one program, in whatever order streams run") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(3, "gpu_collectives");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "138 collectives are the same\n");
}

TEST_CASE("mpi: training steps on GPUs have the bits of those within one program") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "gpu_steps");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "the same bits\n");
}

TEST_CASE("mpi: messages go in pieces where they are too large for one") {
  if (!has_mpi()) return;
  const RanMany ran = run_body(4, "pieces");
  INFO(ran.err);
  CHECK(ran.ending == Ending{});
  CHECK(ran.out == "56 of 56\n56 of 56\n56 of 56\n56 of 56\n");
}

}  // namespace lathe::test
