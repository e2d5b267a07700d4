#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/files/safetensors.h"

namespace lathe {

/// What a checkpoint says beside its tensors. All strings are UTF-8.
struct CheckpointMeta {
  std::int64_t step = 0;
  std::int64_t data_position = 0;  ///< of the next sample or token to be read
  std::string ir_hash = {};        ///< of the graph that the tensors belong to
  std::map<std::string, std::string> config = {};
  std::map<std::string, std::string> values = {};  ///< anything else, such as the seed or the best loss

  bool operator==(const CheckpointMeta&) const = default;
};

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointMeta meta;
  SafetensorsFile tensors;            ///< open: stays readable when the folder is removed
  std::vector<std::string> records;   ///< those of the tensors that the run does not go on from
  std::vector<std::string> warnings;  ///< newer checkpoints that were passed over, and why
};

/// The checkpoints of one training run:
///
///   root/00000007-step-1200/  tensors.safetensors  state.json  manifest.json
///
/// numbered in the order they were saved. A checkpoint is made in a hidden folder: every file is synced, then the
/// manifest (names, sizes, SHA-256) and the folder, then the folder is renamed and root synced. So a kill at any
/// instant leaves every earlier checkpoint whole, and one that save() returned from is durable. What a run cannot go
/// on from, a state that is infinite or no number, is neither saved nor loaded as the newest. Only files that a store
/// wrote are ever removed.
class CheckpointStore {
 public:
  /// What states may be: `any` is for a store that keeps a diverged run to be looked at.
  enum class States : std::uint8_t { finite, any };

  /// Creates nothing yet. `keep` >= 1 newest checkpoints stay when a new one is saved.
  explicit CheckpointStore(std::filesystem::path root, int keep = 2, States states = States::finite);

  /// Saves, removes what is too old or half-made, gives the new folder. `states` are what the run goes on from;
  /// `records`, such as losses so far, may hold anything. One process saves at a time: others wait, up to 30 s. A
  /// checkpoint folder that holds other files too is not removed. UserError [file_write], [file_lock],
  /// [checkpoint_locked], [checkpoint_not_finite] which names the element, [checkpoint_number] where the newest has
  /// the largest number that there is, and those of write_safetensors().
  std::filesystem::path save(const CheckpointMeta& meta, std::span<const TensorView> states,
                             std::span<const TensorView> records = {}) const;

  /// The newest checkpoint whose every file is as its manifest says, and whose states are finite. Nothing if none was
  /// ever saved. UserError [checkpoint_invalid] if there are some, and none is valid: it says what is wrong with
  /// each; [checkpoint_number].
  std::optional<Checkpoint> load_newest() const;

  /// The folders of all checkpoints, newest first, unchecked. UserError [checkpoint_number].
  std::vector<std::filesystem::path> list() const;

  /// Removes what killed processes left half-made. Does nothing where another process is saving, or nothing is there.
  void remove_leftovers() const;

  const std::filesystem::path& root() const { return root_; }

 private:
  void check(const Checkpoint& checkpoint) const;

  std::filesystem::path root_;
  int keep_;
  States states_;
};

/// One checkpoint, checked against its manifest, with states of any values. UserError [checkpoint_invalid] names the
/// file and what is wrong with it.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace lathe
