#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/files/checkpoint.h"

namespace lathe {

/// The folder of a training run:
///
///   run/checkpoints/  checkpoints from which the run resumes (runtime/files/checkpoint.h)
///   run/diverged/     the state after divergence; no run resumes from it
///   run/.lock         held by the process that trains in the folder
///
/// The object and its copies own the folder until the last of them is destroyed or the process ends. A
/// default-constructed object has no folder: everything except operator bool throws UserError [train_folder].
class RunFolder {
 public:
  enum class Start : std::uint8_t { resume, fresh };

  RunFolder() = default;
  /// Creates and locks the folder, and removes incomplete files of killed processes. With Start::resume, finds the
  /// newest valid checkpoint. Throws UserErrors [file_write], [train_locked], which names the process that trains
  /// there, and those of CheckpointStore::load_newest().
  explicit RunFolder(std::filesystem::path path, Start start = Start::resume);

  explicit operator bool() const { return run_ != nullptr; }
  const std::filesystem::path& path() const;
  bool starts_fresh() const;
  /// Returns the checkpoint from which the run resumes; nullopt if it starts from scratch.
  const std::optional<Checkpoint>& checkpoint() const;
  const CheckpointStore& checkpoints() const;
  const CheckpointStore& diverged() const;

 private:
  struct Run;
  const Run& run() const;
  std::shared_ptr<const Run> run_;
};

}  // namespace lathe
