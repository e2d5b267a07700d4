#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/files/checkpoint.h"
#include "tests/robustness/attack.h"
#include "tests/robustness/folder.h"
#include "tests/support/process.h"
#include "tests/support/small_program.h"

namespace lathe::robustness {

/// Whether a process may be held to a size of its address space: AddressSanitizer reserves terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool limits_memory = false;
#else
inline constexpr bool limits_memory = true;
#endif

struct Ran {
  test::Ending ending;
  std::string out, err;
};

/// A folder in which the command is run, with its compile cache in it.
class WorkFolder {
 public:
  explicit WorkFolder(const Options& options) : lathe_(options.lathe) {}

  const Folder& folder() const { return folder_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// The command with these arguments, as run() starts it; for what is around it to be changed.
  test::Command command(std::vector<std::string> arguments) const;
  Ran run(const test::Command& command) const;
  Ran run(std::vector<std::string> arguments) const { return run(command(std::move(arguments))); }

 private:
  std::filesystem::path lathe_;
  Folder folder_;
};

/// Counts how a run ended, and reports it where it ended by a signal, or in another status than 0, 1 and 2, or said
/// nothing of its failure. Whether it is as it must be.
bool judge(Report& report, const std::string& name, const Ran& ran, std::string_view bytes = {});

/// IR text that takes no time to run, and a text to train on.
using test::small_program;
std::string training_text();
/// A training of `steps` steps of a model that a step of takes no time, in `folder`.
std::vector<std::string> training(int steps, std::vector<std::string> more = {}, const std::string& folder = "run");

/// The newest checkpoint of the training in the folder "run"; and all tensors of one, as one text to compare.
std::optional<Checkpoint> newest_checkpoint(const WorkFolder& work);
std::string digest(const Checkpoint& checkpoint);

}  // namespace lathe::robustness
