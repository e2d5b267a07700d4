#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/nn/key_value_cache.h"
#include "frontend/nn/linear.h"
#include "frontend/pretrained/pretrained.h"

/// Language models of an encoder and a decoder as Hugging Face's files describe them: T5.
namespace lathe::pretrained {

/// What such a model reads in one call.
struct Seq2SeqInputs {
  Tensor ids;                               ///< i64 [B, S], what the encoder reads
  Tensor decoder_ids;                       ///< i64 [B, T], the start token and what is written so far
  std::optional<Tensor> mask = {};          ///< i64 [B, S]: 0 for padding; none: no padding
  std::optional<Tensor> decoder_mask = {};  ///< i64 [B, T], likewise
  DType dtype = f32;                        ///< to compute in, whatever the weights are stored in
};

/// New tokens for a decoder that keeps what it has seen in states of the graph.
struct Seq2SeqStep {
  Tensor ids;                       ///< i64 [B, T]
  nn::KeyValueCache cache = {};     ///< of the tokens before
  nn::SourceCache source = {};      ///< of what the encoder has read
  std::optional<Tensor> mask = {};  ///< i64 [sources, source_length] likewise
  DType dtype = f32;
};

/// An encoder, a decoder that sees its states, an output layer.
class Seq2SeqLm : public nn::Module {
 public:
  virtual ~Seq2SeqLm() = default;

  /// The embeddings and the output of each layer of the encoder, of the last one after the final norm: [B, S, hidden]
  /// each.
  std::vector<Tensor> encode(const Seq2SeqInputs& inputs) const;
  /// Likewise of the decoder, [B, T, hidden], which sees the last states of the encoder: memory [B, S, hidden].
  std::vector<Tensor> decode(const Seq2SeqInputs& inputs, const Tensor& memory) const;
  /// Keeps what the decoder needs to see of memory [sources, source_length, hidden], computed once, in
  /// nn::cache_dtype(): nn::SourceCache.
  virtual void keep_source(const Tensor& memory, std::optional<DType> dtype) const = 0;
  /// The decoder's last states for tokens that come after those of the cache: [B, T, hidden].
  virtual Tensor step(const Seq2SeqStep& step) const = 0;
  /// Of the decoder's last states, of the token after each: [.., hidden] -> [.., vocab].
  virtual Tensor head(const Tensor& states) const = 0;

  /// [B, T, vocab], of the token after each of decoder_ids.
  Tensor logits(const Seq2SeqInputs& inputs) const;
  /// The mean over labels i64 [B, T] other than -100, each what follows the token of decoder_ids at its position.
  Tensor loss(const Seq2SeqInputs& inputs, const Tensor& labels) const;
  /// The decoder_ids that belong to labels [B, T]: the start token, then all labels but the last, padding for -100.
  Tensor shifted(const Tensor& labels) const;

  std::int64_t start_token() const { return start_token_; }
  std::int64_t padding() const { return padding_; }
  std::int64_t end_token() const { return end_token_; }
  /// The table of embeddings, [vocab, hidden].
  virtual const nn::Parameter& table() const = 0;
  const Dim& width() const { return table().shape()[1]; }  ///< of the states
  std::int64_t vocabulary_size() const { return table().shape()[0].value().value_or(0); }
  /// The output layer, where it has a table of its own.
  virtual std::optional<nn::Linear> output_layer() const = 0;
  /// The table of embeddings, where it is the output layer's too.
  std::optional<nn::Parameter> tied() const { return output_layer() ? std::nullopt : std::optional(table()); }

 protected:
  /// Reads decoder_start_token_id, pad_token_id and eos_token_id.
  Seq2SeqLm(const Config& config, std::string_view kind);

  /// Of the tokens that the encoder or the decoder reads.
  virtual Tensor embed(const Tensor& ids, DType dtype, bool is_decoder) const = 0;
  virtual std::vector<Tensor> encode(const Tensor& embedded, const std::optional<Tensor>& mask) const = 0;
  virtual std::vector<Tensor> decode(const Tensor& embedded, const std::optional<Tensor>& mask, const Tensor& memory,
                                     const std::optional<Tensor>& memory_mask) const = 0;

 private:
  std::int64_t start_token_, padding_, end_token_;
};

using PretrainedSeq2SeqLm = PretrainedModel<Seq2SeqLm>;

/// Reads the directory of a T5, 1.0 or 1.1:
///
///   auto t5 = pretrained::load_seq2seq_lm("t5-small");
///   Graph g{"logits"};
///   const Dim B{"B"}, S{"S"}, T{"T"};
///   g.output("logits", t5.model->logits({.ids = g.input("input_ids", i64, {B, S}),
///                                        .decoder_ids = g.input("decoder_input_ids", i64, {B, T})}));
///
/// The encoder, the decoder and the output layer have tables of their own where the files hold other values for them
/// than `shared`, as in transformers, whatever tie_word_embeddings says. UserErrors are those of load().
PretrainedSeq2SeqLm load_seq2seq_lm(const std::filesystem::path& folder, const LoadOptions& options = {});

/// Whether a configuration is one of these models'.
bool is_seq2seq(const Config& config);

/// The tables that a model has apart from that of the embeddings.
struct SeparateTables {
  bool encoder = false, decoder = false, head = false;
};
std::unique_ptr<Seq2SeqLm> make_t5(const Config& config, const SeparateTables& separate);
const KeyTable& t5_keys();

}  // namespace lathe::pretrained
