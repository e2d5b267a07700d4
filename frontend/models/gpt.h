#pragma once

#include <optional>
#include <vector>

#include "frontend/nn/attention/attention.h"
#include "frontend/nn/feed_forward.h"
#include "frontend/nn/stacked.h"

namespace lathe::models {

struct GptConfig {
  Dim vocab{"vocab", 256};
  Dim context{"context", 256};  ///< maximum sequence length
  Dim d_model{"d_model", 384}, h{"h", 6};
  std::optional<Dim> d_ff = {};  ///< default: 4 * d_model
  int layers = 6;
  /// Whether the layers run as one loop (nn::Stacked): the IR and the time to compile do not depend on their number.
  /// Their parameters are stacked, h.<name> [layers, ...]. matrices() therefore selects their vectors as well:
  /// choose parameters with weight decay by name.
  bool stacked = false;
  double dropout = 0;
  double norm_eps = 1e-5;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// A decoder-only Transformer with GPT-2's architecture (Radford et al. 2019): learned positions, norms before each
/// sublayer, one projection for q, k and v, tanh GELU, the embedding table as output weights. Parameters have GPT-2's
/// names. Errors about tokens and targets name the caller's line, also at run time.
class Gpt : public nn::Module {
 public:
  /// Throws UserError [attention_heads] unless h divides d_model.
  explicit Gpt(const GptConfig& config, Where at = Where::current()) : Gpt(Module("Gpt"), config, at) {}
  /// Creates the model as part of a larger one, or in a graph.
  Gpt(const Module& parent, const GptConfig& config, Where at = Where::current());

  /// tokens i64 [B, T], T <= context -> logits [B, T, vocab] of the token after each one.
  Tensor logits(const Tensor& tokens, Where at = Where::current()) const;
  /// tokens [B, T+1]: each token except the last predicts the next one. Returns the mean over all of them.
  Tensor loss(const Tensor& tokens, Where at = Where::current()) const;
  /// tokens and targets [B, T].
  Tensor loss(const Tensor& tokens, const Tensor& targets, Where at = Where::current()) const;

 private:
  struct Block : nn::Module {
    Block(const Module& parent, std::string_view name, const GptConfig& config, const Where& at);
    nn::LayerNorm ln_1, ln_2;
    nn::Linear c_attn, c_proj;
    nn::FeedForward mlp;
  };
  /// [B, T, d_model] -> [B, T, d_model]
  Tensor apply(const Block& block, const Tensor& x, const Tensor& forbidden) const;
  /// Causal self-attention: [B, T, d_model] -> [B, T, d_model].
  Tensor attention(const Block& block, const Tensor& x, const Tensor& forbidden) const;

  GptConfig config_;
  Dim d_k_;
  nn::Embedding wte_, wpe_;
  std::vector<Block> blocks_;                  ///< unless they are stacked
  std::optional<nn::Stacked<Block>> stacked_;  ///< the blocks as one loop
  nn::LayerNorm ln_f_;
  nn::Dropout dropout_;
};

}  // namespace lathe::models
