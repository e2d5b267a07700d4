#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/nn/attention/key_value_cache.h"
#include "frontend/nn/linear.h"
#include "models/pretrained/pretrained.h"

/// Encoder-decoder language models from Hugging Face files: T5.
namespace lathe::pretrained {

/// The inputs of one model call.
struct Seq2SeqInputs {
  Tensor ids;                               ///< i64 [B, S], input of the encoder
  Tensor decoder_ids;                       ///< i64 [B, T], the start token and the output so far
  std::optional<Tensor> mask = {};          ///< i64 [B, S]: 0 for padding; none: no padding
  std::optional<Tensor> decoder_mask = {};  ///< i64 [B, T]: 0 for padding; none: no padding
  DType dtype = f32;                        ///< compute dtype, regardless of the dtype of the weights
};

/// New tokens for a decoder with cached keys and values.
struct Seq2SeqStep {
  Tensor ids;                       ///< i64 [B, T]
  nn::KeyValueCache cache = {};     ///< of the previous tokens
  nn::SourceCache source = {};      ///< of the encoder's output
  std::optional<Tensor> mask = {};  ///< i64 [sources, source_length]: 0 for padding; none: no padding
  DType dtype = f32;
};

/// An encoder, a decoder that attends to its states, and an output layer.
class Seq2SeqLm : public nn::Module {
 public:
  virtual ~Seq2SeqLm() = default;

  /// Returns the embeddings and the output of each encoder layer, the last one after the final norm: [B, S, hidden]
  /// each.
  std::vector<Tensor> encode(const Seq2SeqInputs& inputs) const;
  /// Returns the same for the decoder, [B, T, hidden], which attends to the last encoder states: memory [B, S,
  /// hidden].
  std::vector<Tensor> decode(const Seq2SeqInputs& inputs, const Tensor& memory) const;
  /// Caches the decoder's keys and values of memory [sources, source_length, hidden] in nn::cache_dtype():
  /// nn::SourceCache.
  virtual void keep_source(const Tensor& memory, std::optional<DType> dtype) const = 0;
  /// Returns the decoder's last states for tokens that follow those in the cache: [B, T, hidden].
  virtual Tensor step(const Seq2SeqStep& step) const = 0;
  /// Returns the logits of the next token from the decoder's last states: [.., hidden] -> [.., vocab].
  virtual Tensor head(const Tensor& states) const = 0;

  /// Returns the logits [B, T, vocab] of the token after each one of decoder_ids.
  Tensor logits(const Seq2SeqInputs& inputs) const;
  /// Returns the mean loss over labels i64 [B, T] other than -100. A label is the token that follows decoder_ids at
  /// its position.
  Tensor loss(const Seq2SeqInputs& inputs, const Tensor& labels) const;
  /// Returns the decoder_ids for labels [B, T]: the start token, then all labels except the last, with padding for
  /// -100.
  Tensor shifted(const Tensor& labels) const;

  std::int64_t start_token() const { return start_token_; }
  std::int64_t padding() const { return padding_; }
  std::int64_t end_token() const { return end_token_; }
  /// The embedding table, [vocab, hidden].
  virtual const nn::Parameter& table() const = 0;
  const Dim& width() const { return table().shape()[1]; }  ///< of the states
  std::int64_t vocabulary_size() const { return table().shape()[0].value().value_or(0); }
  /// The output layer, if it has its own table.
  virtual std::optional<nn::Linear> output_layer() const = 0;
  /// Name of the output layer in PEFT, whether it has its own table or not.
  virtual std::string_view output_name() const = 0;
  /// The embedding table, if the output layer shares it.
  std::optional<nn::Parameter> tied() const { return output_layer() ? std::nullopt : std::optional(table()); }

 protected:
  /// Reads decoder_start_token_id, pad_token_id and eos_token_id.
  Seq2SeqLm(const Config& config, std::string_view kind);

  /// Embeds the tokens of the encoder or the decoder.
  virtual Tensor embed(const Tensor& ids, DType dtype, bool is_decoder) const = 0;
  virtual std::vector<Tensor> encode(const Tensor& embedded, const std::optional<Tensor>& mask) const = 0;
  virtual std::vector<Tensor> decode(const Tensor& embedded, const std::optional<Tensor>& mask, const Tensor& memory,
                                     const std::optional<Tensor>& memory_mask) const = 0;

 private:
  std::int64_t start_token_, padding_, end_token_;
};

using PretrainedSeq2SeqLm = PretrainedModel<Seq2SeqLm>;

}  // namespace lathe::pretrained
