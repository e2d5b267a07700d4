#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/files/checkpoint.h"

namespace lathe {

/// The folder of one training run:
///
///   run/checkpoints/  what it goes on from (runtime/files/checkpoint.h)
///   run/diverged/     where it diverged, the state then, from which no run goes on
///   run/.lock         held by the process that trains in it
///
/// The folder is this object's, and that of its copies, until the last of them goes or the process ends in whatever
/// way. A default-constructed one is no folder: all but the test for it throw UserError [train_folder].
class RunFolder {
 public:
  enum class Start : std::uint8_t { resume, fresh };

  RunFolder() = default;
  /// Creates the folder, takes it, and removes what killed processes left half-made in it. With Start::resume it
  /// finds the newest good checkpoint. UserErrors [file_write], [train_locked] which names the process that trains
  /// there, and those of CheckpointStore::load_newest().
  explicit RunFolder(std::filesystem::path path, Start start = Start::resume);

  explicit operator bool() const { return run_ != nullptr; }
  const std::filesystem::path& path() const;
  bool starts_fresh() const;
  /// What the run goes on from; nothing where it starts anew.
  const std::optional<Checkpoint>& checkpoint() const;
  const CheckpointStore& checkpoints() const;
  const CheckpointStore& diverged() const;

 private:
  struct Run;
  const Run& run() const;
  std::shared_ptr<const Run> run_;
};

}  // namespace lathe
