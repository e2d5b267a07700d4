#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/pretrained/config/config.h"
#include "models/pretrained/transformer_layer.h"

/// Decoder-only language models from Hugging Face files. A family is a function from config.json to CausalLmOptions.
namespace lathe::pretrained {

/// The inputs of one model call.
struct TokenInputs {
  Tensor ids;                            ///< i64 [B, T]
  std::optional<Tensor> mask = {};       ///< i64 [B, T]: 0 for padding; none: no padding
  std::optional<Tensor> positions = {};  ///< i64 [B, T]; none: 0, 1, 2, ...
  DType dtype = f32;                     ///< compute dtype, regardless of the dtype of the weights
  /// i64 [B, T]: tokens see only tokens with their own number. If positions also restart at 0 in each segment, a row
  /// holds several texts, each computed as if it were alone. None: one text per row.
  std::optional<Tensor> segments = {};
  /// i64 [B], the number of tokens of each row's text; read only by models with depends_on_length(). Default: the
  /// number of tokens of the mask or of the segment; with positions, the last position of the text + 1. Required for
  /// rows that are padded without a mask, and with a cache. All calls on one cache must use lengths with
  /// has_same_rotation().
  std::optional<Tensor> lengths = {};
  /// Keys and values of the previous tokens. It provides the positions, and excludes a mask.
  std::optional<nn::KeyValueCache> cache = {};
  nn::Dispatch dispatch = nn::Dispatch::automatic;  ///< for mixtures of experts, if the model has any
  /// i64 [B, T]: 0 for tokens that the router loss ignores. None: the same as the mask.
  std::optional<Tensor> routed = {};
};

/// A model as its configuration describes it. Names are those in the files.
struct CausalLmOptions {
  std::string_view kind;  ///< name in messages: "Llama"
  Dim vocab, hidden;
  DType dtype = f32;
  std::vector<TransformerLayerOptions> layers = {};
  nn::NormOptions norm = {};  ///< of the norm before the output layer, which is of the layers' kind
  std::optional<std::int64_t> context_length = {};
  bool is_tied = false;  ///< the output layer shares the embedding table

  std::vector<nn::RopeOptions> ropes = {};  ///< rotary embeddings, from which the layers select
  Dim rotary_dim = 0;
  std::string positions = {};  ///< a table of `context_length` positions; empty: none

  double embedding_multiplier = 1;
  double logits_divisor = 1;
  double logits_cap = 0;   ///< logits become cap * tanh(logits / cap); 0: off
  double router_loss = 0;  ///< factor of the load-balancing loss of a mixture of experts; 0: none

  std::string embed_name = "model.embed_tokens", layer_name = "model.layers", norm_name = "model.norm",
              head_name = "lm_head";
};

/// The keys of a configuration that differ between families with Llama's names.
struct DecoderKeys {
  std::string_view activation = "hidden_act", norm_eps = "rms_norm_eps";
};

/// Returns the options of a model like Llama (Touvron et al. 2023), which families change: RMS norms before each
/// sublayer, rotary embedding of whole heads, grouped-query heads, a gated feed-forward. Reads the keys of
/// decoder_keys(), and attention_bias, mlp_bias, sliding_window and layer_types if the family's table has them.
CausalLmOptions decoder_options(const Config& config, std::string_view kind, const DecoderKeys& keys = {});

/// A language model: embedding, layers, norm, output layer.
class CausalLm : public nn::Module {
 public:
  explicit CausalLm(const CausalLmOptions& options);

  /// Returns the embeddings and the output of each layer, the last one after the final norm: [B, T, hidden] each.
  std::vector<Tensor> hidden_states(const TokenInputs& inputs) const { return hidden_states(inputs, nullptr); }
  /// Returns the logits [B, T, vocab] of the token after each one.
  Tensor logits(const TokenInputs& inputs) const { return head(hidden_states(inputs).back()); }
  /// Applies the output layer to states of the last layer [.., hidden]: [.., vocab].
  Tensor head(const Tensor& x) const;
  /// Returns the mean loss over labels i64 [B, T] other than -100. A label is the token at its own position:
  /// logits[i] predicts labels[i + 1]. Includes router_loss() if the model has one.
  Tensor loss(const TokenInputs& inputs, const Tensor& labels) const;
  /// Returns the sum of the losses of these labels times `weight`, a float scalar; at least one label must not be
  /// -100. With weight 1 / n, where n counts the labels in all batches of an update, the batch losses add up to the
  /// loss of one large batch.
  Tensor loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const;

  double router_loss() const { return options_.router_loss; }

  /// Number of positions that the model was trained for, according to its configuration; nothing if that has no
  /// value.
  std::optional<std::int64_t> context_length() const { return options_.context_length; }
  /// Maximum number of positions, if they are in a table; nothing if positions are computed.
  std::optional<std::int64_t> most_positions() const { return positions_ ? options_.context_length : std::nullopt; }
  /// Whether the rotary angles of all tokens depend on the length of their text (nn::depends_on_length()), so that a
  /// call needs TokenInputs::lengths.
  bool depends_on_length() const;
  /// Whether texts of `a` and `b` tokens have the same angles, so that cached keys of one are valid for the other.
  bool has_same_rotation(std::int64_t a, std::int64_t b) const;

  std::int64_t vocabulary_size() const { return embed_.table().shape()[0].value().value_or(0); }

  /// The table of embeddings [vocab, hidden].
  const nn::Parameter& table() const { return embed_.table(); }
  /// The embedding table, if the output layer shares it; nothing if that has its own.
  std::optional<nn::Parameter> tied() const { return head_ ? std::nullopt : std::optional(embed_.table()); }
  /// Name of the output layer in PEFT, whether it is tied or not.
  const std::string& output_name() const { return options_.head_name; }
  /// The output layer, if it is not tied to the embeddings.
  const std::optional<nn::Linear>& output_layer() const { return head_; }

 private:
  static Tensor positions_of(const TokenInputs& inputs);
  Tensor embed(const TokenInputs& inputs, const Tensor& positions) const;
  std::vector<Tensor> hidden_states(const TokenInputs& inputs, std::vector<nn::Routing>* routings) const;
  std::optional<Tensor> lengths_of(const TokenInputs& inputs, const Tensor& positions) const;

  CausalLmOptions options_;
  nn::Embedding embed_;
  std::optional<nn::Embedding> positions_;
  std::optional<nn::Linear> head_;
  TransformerLayer::Norm norm_;
  std::vector<TransformerLayer> layers_;
};

}  // namespace lathe::pretrained
