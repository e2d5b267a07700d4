#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/generation/cache_states.h"
#include "models/generation/exported/exported_graph.h"
#include "models/generation/sequence_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// A decoder from an ONNX file with a cache, as optimum and transformers export it, compiled for generation. Inputs:
///   input_ids i64 [B, T]; attention_mask i64 [B, past + T] and position_ids i64 [B, T], both optional
///   past_key_values.* [B, heads, past, size], whose outputs present.* join them with the new rows; they become
///   states
///   use_cache_branch, optional: the model takes the branch with the cache
/// Its output is logits [B, T, vocab]. Sequences of different lengths are padded on the left, which takes both
/// optional inputs. A file with a fixed batch takes that many sequences [exported_inputs]. Beam search imports the
/// file again, so that each step reorders the cached rows by the parents of the beams.
class ExportedLm final : public SequenceModel {
 public:
  /// Reads the file. Its weights stay mapped. Throws UserErrors of importing::import_graph(); [exported_inputs] for
  /// other inputs or outputs; [exported_options] for a compute dtype other than f32 and for a dtype of the cache,
  /// which the file decides.
  ExportedLm(const std::filesystem::path& file, std::int64_t most_positions,
             const SequenceModelOptions& options = {});

  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return logits_; }
  std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const override { return prompt; }
  std::int64_t most_positions() const override { return most_positions_; }
  std::int64_t vocabulary_size() const override { return vocabulary_; }
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  const Parameters& weights() const { return graph_.weights(); }

 private:
  void read(const DimBindings& sizes, const std::vector<TokenId>& ids, std::int64_t count,
            std::span<const std::int64_t> parents = {});
  const HostTensor& advance(std::span<const TokenId> tokens, std::span<const std::int64_t> parents);
  void repeat_sequence(std::int64_t count);
  void make_room(std::int64_t length, bool keep);

  std::filesystem::path file_;
  SequenceModelOptions options_;
  std::int64_t most_positions_ = 0, vocabulary_ = 0;
  bool has_mask_ = false, has_positions_ = false;
  CacheStates states_;
  ExportedGraph graph_;                     ///< for T new tokens
  bool takes_past_ = false;                 ///< whether no input has the number of cached rows in its shape
  std::int64_t capacity_ = 0, length_ = 0;  ///< rows of the caches, and those that are written
  std::vector<std::int64_t> padding_;       ///< of each sequence, on the left
  HostTensor logits_;
};

}  // namespace lathe
