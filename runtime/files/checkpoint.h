#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/files/safetensors/safetensors.h"

namespace lathe {

/// Metadata of a checkpoint. All strings are UTF-8.
struct CheckpointMeta {
  std::int64_t step = 0;
  std::int64_t data_position = 0;  ///< index of the next sample or token to read
  std::string ir_hash = {};        ///< of the graph that the tensors belong to
  std::map<std::string, std::string> config = {};
  std::map<std::string, std::string> values = {};  ///< other data, such as the seed or the best loss

  bool operator==(const CheckpointMeta&) const = default;
};

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointMeta meta;
  SafetensorsFile tensors;            ///< stays readable after the folder is removed
  std::vector<std::string> records;   ///< names of the tensors from which the run does not resume
  std::vector<std::string> warnings;  ///< newer checkpoints that were skipped, with the reasons
};

/// The checkpoints of a training run:
///
///   root/00000007-step-1200/  tensors.safetensors  state.json  manifest.json
///
/// Checkpoints are numbered in the order of saving. A checkpoint is written to a hidden folder. Every file is synced,
/// then the manifest (names, sizes, SHA-256) and the folder; then the folder is renamed and the root synced. So a
/// kill at any time leaves all earlier checkpoints intact, and a checkpoint is durable when save() returns. States
/// that are infinite or NaN are not saved, and load_newest() skips them. Only files written by a store are ever
/// removed.
class CheckpointStore {
 public:
  /// Allowed values of states. `any` is for a store that keeps a diverged run for inspection.
  enum class States : std::uint8_t { finite, any };

  /// Creates no files yet. save() keeps the `keep` >= 1 newest checkpoints.
  explicit CheckpointStore(std::filesystem::path root, int keep = 2, States states = States::finite);

  /// Saves a checkpoint, removes old and incomplete ones, and returns the new folder. The run resumes from `states`;
  /// `records`, such as losses so far, may contain any values. One process saves at a time; others wait up to 30 s. A
  /// checkpoint folder that also contains other files is not removed. Throws UserError [file_write], [file_lock],
  /// [checkpoint_locked], [checkpoint_not_finite] with the element, [checkpoint_number] if the newest checkpoint has
  /// the largest possible number, and those of write_safetensors().
  std::filesystem::path save(const CheckpointMeta& meta, std::span<const TensorView> states,
                             std::span<const TensorView> records = {}) const;

  /// Returns the newest checkpoint whose files match its manifest and whose states are finite; nullopt if there are
  /// no checkpoints. Throws UserError [checkpoint_invalid] with all faults if no checkpoint is valid;
  /// [checkpoint_number].
  std::optional<Checkpoint> load_newest() const;

  /// Returns the folders of all checkpoints, newest first, unchecked. Throws UserError [checkpoint_number].
  std::vector<std::filesystem::path> list() const;

  /// Removes incomplete checkpoints of killed processes. Does nothing if another process is saving or there are none.
  void remove_leftovers() const;

  const std::filesystem::path& root() const { return root_; }

 private:
  void check(const Checkpoint& checkpoint) const;

  std::filesystem::path root_;
  int keep_;
  States states_;
};

/// Loads a checkpoint and checks it against its manifest. States may have any values. Throws UserError
/// [checkpoint_invalid] with the file and the fault.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace lathe
