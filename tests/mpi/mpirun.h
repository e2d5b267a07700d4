#pragma once

#include <string>

#include "tests/support/programs/process.h"
#include "tests/tools/command.h"

/// Programs run as several processes, like users run them.
namespace lathe::test {

/// Whether there is an MPI to test with; prints SKIP if not.
bool has_mpi();

/// Returns the mpirun words that precede a program, to run `processes` copies of it on this machine, even if there
/// are fewer CPUs, and as any user.
std::vector<std::string> mpirun(int processes);

/// The end of several processes: mpirun's status, and the output of all of them.
struct RanMany {
  Ending ending;
  double seconds = 0;
  std::string out, err;
};
/// Runs mpi_body with a case.
RanMany run_body(int processes, const std::string& name);
/// Runs `lathe <words>` in the scratch folder; all tests share a compile cache.
RanMany run_many(const Scratch& scratch, int processes, const std::vector<std::string>& words);
/// Returns that command, to be changed and waited for. Its streams are the files "out" and "err".
Command command_of(const Scratch& scratch, int processes, const std::vector<std::string>& words);
RanMany run_many(const Scratch& scratch, const Command& command);
/// Adds shell lines that each process of the command runs first; $rank is its rank.
void run_before(const Scratch& scratch, Command& command, const std::string& lines);

/// Whether a process is running. A process that has ended may still exist until its parent waits for it.
bool is_running(pid_t process);
/// Returns the descendants of a process that run a program of that name.
std::vector<pid_t> descendants(pid_t process, const std::string& program);

}  // namespace lathe::test
