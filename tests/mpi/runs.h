#pragma once

#include "runtime/files/checkpoint.h"
#include "tests/mpi/mpirun.h"

/// Training runs on several processes, and their results.
namespace lathe::test {

using Words = std::vector<std::string>;
Words operator+(Words words, const Words& more);
/// Adds the options that the words do not contain.
using Options = std::vector<std::pair<std::string, std::string>>;
Words with_usual(Words words, const Options& usual);

/// A mesh, and the `lathe` options for it.
struct MeshOfTest {
  int processes;
  Words words;
};

inline const MeshOfTest by_data{2, {"--mesh", "data=2", "--split", "B:data"}};
inline const MeshOfTest by_model{2, {"--mesh", "model=2", "--split", "h:model"}};
inline const MeshOfTest by_both{4, {"--mesh", "data=2,model=2", "--split", "B:data,h:model", "--states", "data"}};
inline const MeshOfTest by_ring{2, {"--mesh", "seq=2", "--split", "T:seq", "--ring", "always"}};
inline const MeshOfTest by_parameters{4, {"--mesh", "data=4", "--split", "B:data", "--parameters", "data"}};

/// Returns `train` for a small GPT with its own text, in the folder `run`; `more` replaces default options.
Words training(const Scratch& scratch, const std::string& run, const Words& more = {});

/// Runs `lathe <words>` on `processes` processes, which must succeed.
void run_to_end(const Scratch& scratch, int processes, const Words& words);

/// Returns the newest checkpoint in a run's folder.
Checkpoint newest(const Scratch& scratch, const std::string& run);
/// Removes the newest of two checkpoints.
void forget_newest(const Scratch& scratch, const std::string& run);

/// Checks that the losses of two runs agree up to the order of summation.
void check_losses(const Scratch& scratch, const std::string& run, const std::string& expected);
void check_same_bits(const Scratch& scratch, const std::string& run, const std::string& expected);

/// Runs `lathe <words>` on two processes: training without an end, which has saved a checkpoint in its run folder.
class Endless {
 public:
  Endless(const Scratch& scratch, const Words& words, const std::string& run = "run");
  /// The same for a command.
  Endless(const Scratch& scratch, const Command& command, const std::string& run = "run");
  Process& mpirun() { return mpirun_; }
  const std::vector<pid_t>& processes() const { return processes_; }

  /// Checks that all processes end within `seconds`.
  void check_ends(double seconds);

 private:
  Process mpirun_;
  std::vector<pid_t> processes_;
};

}  // namespace lathe::test
