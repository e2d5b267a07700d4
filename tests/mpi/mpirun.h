#pragma once

#include <string>

#include "tests/support/process.h"
#include "tests/tools/command.h"

/// Programs run as several processes, as users run them.
namespace lathe::test {

/// Whether there is an MPI to test with; says SKIP where there is none.
bool has_mpi();

/// The words before those of a program that mpirun is to run so many times, more than there are CPUs too, on this
/// machine, as whichever user.
std::vector<std::string> mpirun(int processes);

/// How several processes ended: mpirun's status, and what all of them wrote.
struct RanMany {
  Ending ending;
  double seconds = 0;
  std::string out, err;
};
/// Runs mpi_body with a case.
RanMany run_body(int processes, const std::string& name);
/// Runs `lathe <words>` in the scratch folder; all tests share a compile cache.
RanMany run_many(const Scratch& scratch, int processes, const std::vector<std::string>& words);
/// The command of that, to be changed and waited for: the streams are the files "out" and "err".
Command command_of(const Scratch& scratch, int processes, const std::vector<std::string>& words);
RanMany run_many(const Scratch& scratch, const Command& command);
/// Each process of the command runs these lines of shell first: $rank is its number.
void run_before(const Scratch& scratch, Command& command, const std::string& lines);

/// Whether it runs: one that has ended may be there until somebody asks how.
bool is_running(pid_t process);
/// Processes that descend from this one and run a program of that name.
std::vector<pid_t> descendants(pid_t process, const std::string& program);

}  // namespace lathe::test
