#include "tests/mpi/gpus.h"

#include <cstdlib>

namespace lathe::test {

bool has_mock_gpus() {
  if (!has_mpi()) return false;
  const bool has = std::system("c++ --version > /dev/null 2>&1") == 0;
  if (!has) WARN("SKIP: kernels of mock GPUs want a C++ compiler named c++");
  return has;
}

Command gpu_command(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine) {
  Command command = command_of(scratch, processes, words + Words{"--target", "cuda"});
  command.environment["LD_LIBRARY_PATH"] = LATHE_MOCK_CUDA;
  command.environment["CUDA_HOME"] = LATHE_MOCK_CUDA;
  command.environment["CUDA_PATH"] = LATHE_MOCK_NCCL;
  command.environment["MOCK_CUDA_GPUS"] = std::to_string(machine.gpus);
  run_before(scratch, command, machine.before);
  return command;
}

RanMany run_on_gpus(const Scratch& scratch, int processes, const Words& words, const MockMachine& machine) {
  return run_many(scratch, gpu_command(scratch, processes, words, machine));
}

}  // namespace lathe::test
