#pragma once

#include <optional>
#include <vector>

#include "frontend/nn/attention/attention.h"
#include "frontend/nn/attention/positions.h"
#include "frontend/nn/feed_forward.h"
#include "frontend/nn/stacked.h"

namespace lathe::models {

struct LlamaConfig {
  Dim vocab{"vocab", 256};
  Dim d_model{"d_model", 384}, d_ff{"d_ff", 1024};
  Dim h{"h", 6}, kv_heads{"kv_heads", 2}, head_dim{"head_dim", 64};
  int layers = 6;
  /// Whether the layers run as one loop (nn::Stacked): the IR and the time to compile do not depend on their number.
  /// Their parameters are stacked, layers.<name> [layers, ...]. matrices() therefore selects their vectors as well:
  /// choose parameters with weight decay by name.
  bool stacked = false;
  double norm_eps = 1e-5;
  double theta = 10000;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// A decoder-only Transformer with Llama's architecture (Touvron et al. 2023): RMS norms, rotary embedding in the
/// half-split layout, grouped-query heads by expand and reshape, SwiGLU, an untied output layer. Errors about tokens
/// name the caller's line, also at run time.
class Llama : public nn::Module {
 public:
  /// Throws UserError [attention_heads] unless kv_heads divides h.
  explicit Llama(const LlamaConfig& config, Where at = Where::current()) : Llama(Module("Llama"), config, at) {}
  /// Creates the model as part of a larger one, or in a graph.
  Llama(const Module& parent, const LlamaConfig& config, Where at = Where::current());

  /// tokens i64 [B, T] -> logits [B, T, vocab] of the token after each one.
  Tensor logits(const Tensor& tokens, Where at = Where::current()) const;
  /// tokens [B, T+1]: each token except the last predicts the next one. Returns the mean over all of them.
  Tensor loss(const Tensor& tokens, Where at = Where::current()) const;

 private:
  struct Block : nn::Module {
    Block(const Module& parent, std::string_view name, const LlamaConfig& config, const Where& at);
    nn::RmsNorm input_norm, post_norm;
    nn::Linear q_proj, k_proj, v_proj, o_proj;
    nn::GatedFeedForward mlp;
  };
  /// Both: [B, T, d_model] -> [B, T, d_model].
  Tensor apply(const Block& block, const Tensor& x, const nn::RotaryTables& rotary, const Tensor& forbidden) const;
  Tensor attention(const Block& block, const Tensor& x, const nn::RotaryTables& rotary,
                   const Tensor& forbidden) const;

  LlamaConfig config_;
  Dim groups_;  ///< query heads per key head
  nn::Embedding embed_;
  std::vector<Block> blocks_;                  ///< unless they are stacked
  std::optional<nn::Stacked<Block>> stacked_;  ///< the blocks as one loop
  nn::RmsNorm norm_;
  nn::Linear lm_head_;
};

}  // namespace lathe::models
