#pragma once

#include "tests/mpi/runs.h"

/// The command on mock GPUs: the mocks of CUDA's libraries are where it looks for the real ones.
namespace lathe::test {

/// Whether there is a compiler for kernels and an MPI; prints SKIP if not.
bool has_mock_gpus();

/// A machine with GPUs, and the environment of its processes.
struct MockMachine {
  int gpus = 2;
  /// Shell lines that each process runs before it starts; $rank is its rank.
  std::string before = {};
};

/// Returns the command `lathe <words> --target cuda` for this number of processes, 0: without mpirun; like
/// command_of().
Command gpu_command(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine = {});
/// Runs that command and waits for its end.
RanMany run_on_gpus(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine = {});

}  // namespace lathe::test
