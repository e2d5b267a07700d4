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
  std::string ir_hash;             ///< of the graph that the tensors belong to
  std::map<std::string, std::string> config;
  std::map<std::string, std::string> values;  ///< anything else, such as the seed or the best loss

  bool operator==(const CheckpointMeta&) const = default;
};

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointMeta meta;
  SafetensorsFile tensors;            ///< open: stays readable when the folder is removed
  std::vector<std::string> warnings;  ///< newer checkpoints that were passed over, and why
};

/// The checkpoints of one training run:
///
///   root/00000007-step-1200/  tensors.safetensors  state.json  manifest.json
///
/// numbered in the order they were saved. A checkpoint is made in a hidden folder: every file is synced, then the
/// manifest (names, sizes, SHA-256) and the folder, then the folder is renamed and root synced. So a kill at any
/// instant leaves every earlier checkpoint whole, and one that save() returned from is durable.
class CheckpointStore {
 public:
  /// Creates nothing yet. `keep` >= 1 newest checkpoints stay when a new one is saved.
  explicit CheckpointStore(std::filesystem::path root, int keep = 2);

  /// Saves, removes what is too old or half-made, gives the new folder. One process saves at a time: others wait, up
  /// to 30 s. UserError [file_write], [checkpoint_locked], and those of write_safetensors().
  std::filesystem::path save(const CheckpointMeta& meta, std::span<const TensorView> tensors) const;

  /// The newest checkpoint whose every file is as its manifest says. Nothing if none was ever saved. UserError
  /// [checkpoint_invalid] if there are some, and none is valid: it says what is wrong with each.
  std::optional<Checkpoint> load_newest() const;

  /// The folders of all checkpoints, newest first, unchecked.
  std::vector<std::filesystem::path> list() const;

 private:
  std::filesystem::path root_;
  int keep_;
};

/// One checkpoint, checked in full. UserError [checkpoint_invalid] names the file and what is wrong with it.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace lathe
