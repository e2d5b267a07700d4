#pragma once

#include <optional>
#include <vector>

#include "frontend/nn/attention/attention.h"
#include "frontend/nn/feed_forward.h"

namespace lathe::models {

struct EncoderDecoderConfig {
  Dim src_vocab{"src_vocab", 11}, tgt_vocab{"tgt_vocab", 11};
  Dim d_model{"d_model", 512}, d_ff{"d_ff", 2048}, h{"h", 8};
  std::optional<Dim> d_k = {}, d_v = {};  ///< default: d_model / h
  int layers = 6;
  std::int64_t pad = 0;  ///< padding token: never attended to, never a target
  bool pre_norm = true;  ///< x + f(norm(x)) and a norm after each stack, or norm(x + f(x))
  nn::Activation activation = nn::Activation::relu;
  double dropout = 0;  ///< 0.1 in the paper
  double label_smoothing = 0;
  double norm_eps = 1e-6;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// The encoder-decoder Transformer (Vaswani et al. 2017): sinusoidal positions, embeddings scaled by sqrt(d_model), N
/// layers per stack, padding and causal masks by masked_fill(-1e9), a linear generator. Errors about src and tgt name
/// the caller's line, also at run time.
class EncoderDecoder : public nn::Module {
 public:
  explicit EncoderDecoder(const EncoderDecoderConfig& config, Where at = Where::current())
      : EncoderDecoder(Module("EncoderDecoder"), config, at) {}
  /// Creates the model as part of a larger one, or in a graph.
  EncoderDecoder(const Module& parent, const EncoderDecoderConfig& config, Where at = Where::current());

  /// i64 [B, 1, 1, S]: 1 where src [B, S] is not padding.
  Tensor source_mask(const Tensor& src, Where at = Where::current()) const;
  /// i64 [B, 1, T, T]: 1 where tgt [B, T] is not padding and not later than the query.
  Tensor target_mask(const Tensor& tgt, Where at = Where::current()) const;
  /// src [B, S] -> memory [B, S, d_model].
  Tensor encode(const Tensor& src, const Tensor& mask, Where at = Where::current()) const;
  /// tgt [B, T], memory [B, S, d_model] -> [B, T, d_model].
  Tensor decode(const Tensor& tgt, const Tensor& memory, const Tensor& source_mask,
                Where at = Where::current()) const;
  /// src [B, S], tgt [B, T] -> logits [B, T, tgt_vocab] of the token after each one of tgt.
  Tensor logits(const Tensor& src, const Tensor& tgt, Where at = Where::current()) const;
  /// tgt [B, T+1]: each token except the last predicts the next one. Returns the mean over targets that are not
  /// padding.
  Tensor loss(const Tensor& src, const Tensor& tgt, Where at = Where::current()) const;

 private:
  struct EncoderLayer : nn::Module {
    EncoderLayer(const Module& parent, std::string_view name, const EncoderDecoderConfig& config, const Where& at);
    nn::MultiHeadAttention self;
    nn::FeedForward ffn;
    nn::LayerNorm norm1, norm2;
  };
  struct DecoderLayer : nn::Module {
    DecoderLayer(const Module& parent, std::string_view name, const EncoderDecoderConfig& config, const Where& at);
    nn::MultiHeadAttention self, cross;
    nn::FeedForward ffn;
    nn::LayerNorm norm1, norm2, norm3;
  };
  /// ids [B, S] -> [B, S, d_model]
  Tensor embed(const nn::Embedding& table, const Tensor& ids, const Where& at) const;
  template <class Sublayer>
  Tensor residual(const nn::LayerNorm& norm, const Tensor& x, Sublayer sublayer) const;

  EncoderDecoderConfig config_;
  nn::Embedding src_embedding_, tgt_embedding_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  std::optional<nn::LayerNorm> encoder_norm_, decoder_norm_;
  nn::Linear generator_;
  nn::Dropout dropout_;
};

}  // namespace lathe::models
