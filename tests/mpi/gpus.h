#pragma once

#include "tests/mpi/runs.h"

/// The command on GPUs that are none: the mocks of CUDA's libraries stand where it looks for the real ones.
namespace lathe::test {

/// Whether there is a compiler for kernels, and an MPI; says SKIP where there is none.
bool has_mock_gpus();

/// A machine with GPUs, and what processes find there.
struct MockMachine {
  int gpus = 2;
  /// Lines of a shell before a process starts, which finds its number in $rank.
  std::string before = {};
};

/// `lathe <words> --target cuda` on so many processes, 0: without mpirun; as command_of().
Command gpu_command(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine = {});
/// The same, to its end.
RanMany run_on_gpus(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine = {});

}  // namespace lathe::test
