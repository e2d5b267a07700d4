#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "models/generation/sequence_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// A decoder from a .pt2 file with caches of a fixed size in its buffers, as the exporter of transformers
/// (convert_and_export_with_cache) writes it, compiled for generation. Inputs:
///   input_ids i64 [B, T]
///   cache_position i64 [T]: the positions of the new tokens
/// Its only output, or the one called logits, is [B, T, vocab]. B is the number of sequences, which the caches fix. T
/// is 1, so that a prompt is read token by token, or any number. Each start sets all buffers that the program writes
/// to their values in the file.
class StaticCacheLm final : public SequenceModel {
 public:
  /// Reads the file. Its weights stay mapped. A sequence has at most `most_positions` tokens, and no more than the
  /// largest cache has rows. Throws UserErrors of importing::import_graph(); [exported_inputs] for other inputs or
  /// outputs, and without caches; [exported_options] for a compute dtype other than f32 and for a dtype of the cache,
  /// which the file decides.
  StaticCacheLm(const std::filesystem::path& file, std::int64_t most_positions,
                const SequenceModelOptions& options = {});

  /// Throws UserError [exported_inputs] for another number of prompts than B, and for prompts of different lengths.
  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return logits_; }
  std::vector<TokenId> opening(const std::vector<TokenId>& prompt) const override { return prompt; }
  std::int64_t most_positions() const override { return most_positions_; }
  std::int64_t vocabulary_size() const override { return vocabulary_; }
  /// Throws UserError [exported_inputs] for several beams.
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  const Parameters& weights() const { return store_; }

 private:
  void check_inputs();
  void learn_caches();
  void read(const std::vector<TokenId>& ids, std::int64_t count);

  std::string file_;
  SequenceModelOptions options_;
  ir::Graph graph_;
  Parameters store_;
  Tensors empty_;  ///< the values in the file of the buffers that the program writes
  std::map<std::int64_t, Executable> compiled_ = {};  ///< for one new token, and 0: any number
  std::int64_t batch_ = 1, most_positions_ = 0, vocabulary_ = 0;
  Dim new_tokens_ = 1;  ///< T in the file
  bool is_started_ = false;
  std::int64_t length_ = 0;  ///< of the sequences
  HostTensor logits_;
};

}  // namespace lathe
