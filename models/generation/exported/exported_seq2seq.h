#pragma once

#include <string>
#include <vector>

#include "models/generation/cache_states.h"
#include "models/generation/exported/exported_files.h"
#include "models/generation/exported/exported_graph.h"
#include "models/generation/sequence_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// An encoder-decoder model from ONNX files, as optimum exports it, compiled for generation. The encoder runs once
/// per prompt, and so do the decoder's keys and values of its states. Inputs; masks are optional:
///   encoder   input_ids and attention_mask i64 [B, S] -> last_hidden_state [B, S, hidden]
///   decoder   input_ids i64 [B, 1], encoder_attention_mask i64 [B, S], encoder_hidden_states [B, S, hidden];
///             past_key_values.*.decoder.* [B, heads, past, size], whose outputs present.* join them with the new
///             rows; past_key_values.*.encoder.* [B, heads, S, size]; use_cache_branch
/// Past keys and values become states. The decoder's output is logits [B, 1, vocab]. Prompts of different lengths are
/// padded on the right, which takes both masks. A file with a fixed batch takes that many sequences
/// [exported_inputs]. Beam search imports the decoder again, so that each step reorders the cached rows by the
/// parents of the beams; the beams have copies of the keys and values of the encoder's states.
class ExportedSeq2Seq final : public SequenceModel {
 public:
  struct Tokens {
    TokenId start = 0, padding = 0;
  };
  /// Reads the files. Their weights stay mapped. Throws UserErrors of importing::import_graph(), [exported_inputs]
  /// for other inputs or outputs, and those of check_exported_options().
  ExportedSeq2Seq(const ExportedFiles& files, const Tokens& tokens, std::int64_t most_positions,
                  const SequenceModelOptions& options = {});

  const HostTensor& start(std::span<const std::vector<TokenId>> prompts) override;
  const HostTensor& step(std::span<const TokenId> tokens, const std::vector<bool>& done = {}) override;
  const HostTensor& logits() const override { return step_.results.at("logits"); }
  std::vector<TokenId> opening(const std::vector<TokenId>& /*prompt*/) const override { return {tokens_.start}; }
  std::int64_t most_positions() const override { return most_positions_; }
  std::int64_t vocabulary_size() const override { return vocabulary_; }
  std::vector<Beam> beams(const std::vector<TokenId>& prompt, const BeamOptions& options) override;

  /// The weights of the decoder.
  const Parameters& weights() const { return step_.graph.weights(); }

 private:
  struct Part {
    ExportedGraph graph;
    Tensors results = {};  ///< of the last run
  };
  void import_encoder(const std::filesystem::path& file);
  void import_step(const std::filesystem::path& file);
  void import_first(const std::filesystem::path& file);
  /// Runs a graph with `ids` as its input_ids. With `parents`, each sequence continues the cached rows of another.
  void run(Part& part, const HostTensor& ids, const DimBindings& dims = {},
           std::span<const std::int64_t> parents = {});
  /// Runs the encoder on the prompts, and gives the keys and values of its states to `copies` sequences per prompt.
  void read(std::span<const std::vector<TokenId>> prompts, std::int64_t copies);
  const HostTensor& next(std::span<const TokenId> tokens, std::span<const std::int64_t> parents = {});

  std::filesystem::path step_file_;
  SequenceModelOptions options_;
  Tokens tokens_;
  std::int64_t most_positions_ = 0, vocabulary_ = 0;
  Part encoder_, first_, step_;    ///< first_: the keys and values of the encoder's states
  std::vector<std::string> kept_;  ///< past_key_values.*.encoder.*, states of step_
  bool has_masks_ = false;         ///< both the encoder and the decoder
  bool takes_past_ = false;        ///< whether no input of step_ has the number of cached rows in its shape
  CacheStates states_;
  std::int64_t batch_ = 0, capacity_ = 0, length_ = 0;
  HostTensor mask_, hidden_;  ///< of the last prompts: i64 [B, S], [B, S, hidden]
};

}  // namespace lathe
