#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/experts.h"
#include "frontend/nn/feed_forward.h"

/// The layer of all families that add each sublayer's output to its input: decoders, T5, ViT.
namespace lathe::pretrained {

/// The states of an encoder [B, S, hidden], or their cached keys and values, which a decoder attends to.
struct Memory {
  std::variant<Tensor, nn::SourceCache> source;
  nn::AttentionContext context;
};

/// State shared by all layers of a model call.
struct LayerCall {
  nn::AttentionContext context;
  std::vector<nn::RotaryTables> tables = {};  ///< one for each of the model's ropes
  nn::Dispatch dispatch = nn::Dispatch::automatic;
  std::vector<nn::Routing>* routings = nullptr;  ///< collects those of each mixture of experts, unless null
  const Memory* memory = nullptr;                ///< required by layers with cross-attention
};

enum class NormKind : std::uint8_t { rms, layer };

/// The differences between families. Names are those in the files; an empty name of a norm means that there is none.
struct TransformerLayerOptions {
  nn::SelfAttentionOptions attention;
  Dim d_ff;  ///< width of the feed-forward
  std::variant<nn::GatedFeedForwardOptions, nn::FeedForwardOptions, nn::ExpertsOptions> feed_forward;
  NormKind norm_kind = NormKind::rms;
  nn::NormOptions norm = {};

  std::string attention_name = "self_attn", feed_forward_name = "mlp";
  // Norms of the inputs of both sublayers, and of their outputs.
  std::string attention_norm = "input_layernorm", attention_output_norm = {};
  std::string feed_forward_norm = "post_attention_layernorm", feed_forward_output_norm = {};

  /// Attention to the call's memory, between self-attention and feed-forward, with a norm of its input.
  struct Cross {
    std::string name, norm;
  };
  std::optional<Cross> cross = {};

  std::optional<std::size_t> rope =
      {};                          ///< which of the model's ropes rotates q and k; none: positions are not rotated
  bool is_parallel = false;        ///< attention and feed-forward have the same input
  double residual_multiplier = 1;  ///< of the sublayers' outputs
};

/// x + attention(norm(x)), then x + feed_forward(norm(x)): [B, T, hidden] -> [B, T, hidden].
class TransformerLayer : public nn::Module {
 public:
  TransformerLayer(const Module& parent, std::string_view name, const TransformerLayerOptions& options);

  Tensor operator()(const Tensor& x, const LayerCall& call) const;

  using Norm = std::function<Tensor(const Tensor&)>;
  /// Creates a norm below `parent`; an empty one for an empty name.
  static Norm norm(const Module& parent, const std::string& name, const Dim& d, NormKind kind,
                   const nn::NormOptions& options);

  /// Caches the keys and values of memory [sources, S, hidden] for cross-attention: nn::SourceCache.
  void keep_source(const Tensor& memory, std::optional<DType> dtype) const;

 private:
  using FeedForward = std::variant<nn::GatedFeedForward, nn::FeedForward, nn::Experts>;

  Norm norm(const std::string& name, const TransformerLayerOptions& options) const;
  static FeedForward feed_forward(const Module& parent, const TransformerLayerOptions& options);
  Tensor attend(const Tensor& x, const LayerCall& call) const;
  Tensor feed(const Tensor& x, const LayerCall& call) const;
  Tensor add(const Tensor& x, const Tensor& output) const;

  nn::SelfAttention attention_;
  FeedForward feed_forward_;
  Norm attention_norm_, attention_output_norm_, feed_forward_norm_, feed_forward_output_norm_;
  std::optional<nn::SelfAttention> cross_;
  Norm cross_norm_;
  std::optional<std::size_t> rope_;
  bool is_parallel_;
  double residual_multiplier_;
};

}  // namespace lathe::pretrained
