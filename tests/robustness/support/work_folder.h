#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/files/checkpoint.h"
#include "tests/robustness/support/attack.h"
#include "tests/robustness/support/folder.h"
#include "tests/support/programs/process.h"
#include "tests/support/programs/small_program.h"

namespace lathe::robustness {

/// Whether the address space of a process may be limited: AddressSanitizer reserves terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool limits_memory = false;
#else
inline constexpr bool limits_memory = true;
#endif

struct Ran {
  test::Ending ending;
  std::string out, err;
};

/// A folder to run the command in, with its compile cache.
class WorkFolder {
 public:
  explicit WorkFolder(const Options& options) : lathe_(options.lathe) {}

  const Folder& folder() const { return folder_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// Returns the command with these arguments as run() starts it, so that its environment can be changed.
  test::Command command(std::vector<std::string> arguments) const;
  Ran run(const test::Command& command) const;
  Ran run(std::vector<std::string> arguments) const { return run(command(std::move(arguments))); }

 private:
  std::filesystem::path lathe_;
  Folder folder_;
};

/// Counts how a run ended. Reports a signal, an exit status other than 0, 1 and 2, or a failure without a message.
/// Returns whether the run was valid.
bool judge(Report& report, const std::string& name, const Ran& ran, std::string_view bytes = {});

/// IR text that runs quickly, and a text to train on.
using test::small_program;
std::string training_text();
/// Returns a training command with `steps` quick steps, in `folder`.
std::vector<std::string> training(int steps, std::vector<std::string> more = {}, const std::string& folder = "run");

/// Returns the newest checkpoint of the training in the folder "run"; and all tensors of a checkpoint as one text to
/// compare.
std::optional<Checkpoint> newest_checkpoint(const WorkFolder& work);
std::string digest(const Checkpoint& checkpoint);

}  // namespace lathe::robustness
