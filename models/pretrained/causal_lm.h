#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/nn/attention/key_value_cache.h"
#include "frontend/nn/experts.h"
#include "frontend/nn/linear.h"

/// Decoder-only language models from Hugging Face files. A family is a function from config.json to CausalLmOptions
/// (causal_lm_options.h).
namespace lathe::pretrained {

struct CausalLmOptions;

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
  /// Returns the sum of the labels' losses times `weight`, a float scalar; at least one label must not be
  /// -100. With weight 1 / n, where n counts the labels in all batches of an update, the batch losses add up to the
  /// loss of one large batch.
  Tensor loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const;

  /// Factor of the load-balancing loss of a mixture of experts; 0: none.
  double router_loss() const;

  /// Number of positions that the model was trained for, according to its configuration; nothing if that has no
  /// value.
  std::optional<std::int64_t> context_length() const;
  /// Maximum number of positions, if they are in a table; nothing if positions are computed.
  std::optional<std::int64_t> most_positions() const;
  /// Whether the rotary angles of all tokens depend on the length of their text (nn::depends_on_length()), so that a
  /// call needs TokenInputs::lengths.
  bool depends_on_length() const;
  /// Whether texts of `a` and `b` tokens have the same angles, so that cached keys of one are valid for the other.
  bool has_same_rotation(std::int64_t a, std::int64_t b) const;

  std::int64_t vocabulary_size() const;

  /// The table of embeddings [vocab, hidden].
  const nn::Parameter& table() const;
  /// The embedding table, if the output layer shares it; nothing if that has its own.
  std::optional<nn::Parameter> tied() const;
  /// Name of the output layer in PEFT, whether it is tied or not.
  const std::string& output_name() const;
  /// The output layer, if it is not tied to the embeddings.
  const std::optional<nn::Linear>& output_layer() const;

 private:
  std::vector<Tensor> hidden_states(const TokenInputs& inputs, std::vector<nn::Routing>* routings) const;

  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace lathe::pretrained
