#pragma once

#include "runtime/files/checkpoint.h"
#include "tests/mpi/mpirun.h"

/// Training runs on several processes, and what they leave behind.
namespace lathe::test {

using Words = std::vector<std::string>;
Words operator+(Words words, const Words& more);
/// Words, and those of these options that are not among them.
using Options = std::vector<std::pair<std::string, std::string>>;
Words with_usual(Words words, const Options& usual);

/// A mesh and how `lathe` is told of it.
struct MeshOfTest {
  int processes;
  Words words;
};

inline const MeshOfTest by_data{2, {"--mesh", "data=2", "--split", "B:data"}};
inline const MeshOfTest by_model{2, {"--mesh", "model=2", "--split", "h:model"}};
inline const MeshOfTest by_both{4, {"--mesh", "data=2,model=2", "--split", "B:data,h:model", "--states", "data"}};
inline const MeshOfTest by_ring{2, {"--mesh", "seq=2", "--split", "T:seq", "--ring", "always"}};
inline const MeshOfTest by_parameters{4, {"--mesh", "data=4", "--split", "B:data", "--parameters", "data"}};

/// `train` of a small GPT on a text of its own, in the folder `run`, with other options than the usual.
Words training(const Scratch& scratch, const std::string& run, const Words& more = {});

/// Runs `lathe <words>` on so many processes, to a good end.
void run_to_end(const Scratch& scratch, int processes, const Words& words);

/// The newest checkpoint of a run's folder.
Checkpoint newest(const Scratch& scratch, const std::string& run);
/// Goes back to the checkpoint before the newest, of two.
void forget_newest(const Scratch& scratch, const std::string& run);

/// The losses of two runs agree as sums in another order do.
void check_losses(const Scratch& scratch, const std::string& run, const std::string& expected);
void check_same_bits(const Scratch& scratch, const std::string& run, const std::string& expected);

/// `lathe <words>` on two processes, training without an end, which has saved a checkpoint in the folder of the run.
class Endless {
 public:
  Endless(const Scratch& scratch, const Words& words, const std::string& run = "run");
  /// The same of a command.
  Endless(const Scratch& scratch, const Command& command, const std::string& run = "run");
  Process& mpirun() { return mpirun_; }
  const std::vector<pid_t>& processes() const { return processes_; }

  /// All end within so many seconds.
  void check_ends(double seconds);

 private:
  Process mpirun_;
  std::vector<pid_t> processes_;
};

}  // namespace lathe::test
