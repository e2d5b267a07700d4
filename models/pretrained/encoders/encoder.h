#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/feed_forward.h"
#include "models/pretrained/pretrained.h"

/// Encoders from Hugging Face files: BERT, RoBERTa, DistilBERT. A family is a function from config.json to
/// EncoderOptions.
namespace lathe::pretrained {

/// The inputs of one encoder call.
struct EncoderInputs {
  Tensor ids;                            ///< i64 [B, T]
  std::optional<Tensor> mask = {};       ///< i64 [B, T]: 0 for padding; none: no padding
  std::optional<Tensor> types = {};      ///< i64 [B, T], the segment of each token; none: 0
  std::optional<Tensor> positions = {};  ///< i64 [B, T]; none: the family's default
  DType dtype = f32;                     ///< compute dtype, regardless of the dtype of the weights
};

/// Tensor names of the parts of a layer, which are the only difference between layers of the families.
struct EncoderLayerNames {
  std::string_view q, k, v, o;  ///< within "attention"
  std::string_view attention_norm, up, down, output_norm;
};

/// The differences between families. Names are those in the files.
struct EncoderOptions {
  std::string_view kind;
  Dim vocab, positions, d_ff;
  std::optional<Dim> types = {};  ///< number of segments; none: the model has no segments
  std::optional<std::int64_t> padding =
      {};  ///< if set, positions skip this token and start at its id + 1; otherwise they start at 0
  int layers = 12;
  nn::Activation activation = nn::Activation::gelu;
  double norm_eps = 1e-12;

  std::string embeddings, layer;       ///< prefixes of the tables, and of a layer's number
  nn::SelfAttentionOptions attention;  ///< without its names
  EncoderLayerNames names;

  /// The output layer of a masked language model: table(norm(activation(dense(x)))) + bias.
  struct Head {
    std::string dense, norm, table, bias;
    nn::Activation activation = nn::Activation::gelu;
    bool is_tied = true;  ///< shares the embedding table
  };
  std::optional<Head> head = {};
  std::string head_tensors =
      {};                   ///< the output layer's tensors, which a model without it ignores: "cls.predictions.*"
  std::string pooler = {};  ///< the layer applied to the first token's state; empty: none
};

/// x = norm(x + attention(x)), then norm(x + feed_forward(x)) (Vaswani et al. 2017).
class EncoderLayer : public nn::Module {
 public:
  EncoderLayer(const Module& parent, std::string_view name, const EncoderOptions& options);
  Tensor operator()(const Tensor& x, const nn::AttentionContext& context) const;

 private:
  nn::SelfAttention attention_;
  nn::LayerNorm attention_norm_;
  nn::FeedForward feed_forward_;
  nn::LayerNorm output_norm_;
};

/// Embeddings of tokens, positions and segments, a norm, and layers; an output layer and a pooler if the files have
/// them.
class Encoder : public nn::Module {
 public:
  explicit Encoder(const EncoderOptions& options);

  /// Returns the embeddings and the output of each layer: [B, T, hidden] each. Throws UserError [encoder_part] for
  /// segments if the model has none.
  std::vector<Tensor> hidden_states(const EncoderInputs& inputs) const;

  /// The table of token embeddings, [vocab, hidden].
  const nn::Parameter& table() const { return words_.table(); }

  bool has_head() const { return head_dense_.has_value(); }
  /// Returns the prefix that Hugging Face omits from names, except those of the output layer, if the model has no
  /// output layer: "bert."; empty if it has one.
  std::string root_name() const;
  /// The embedding table, if the output layer shares it.
  std::optional<nn::Parameter> tied() const {
    return options_.head && options_.head->is_tied ? head_table_ : std::nullopt;
  }
  /// Returns the name of the output layer's table in PEFT: "cls.predictions.decoder"; empty if there is none.
  std::string output_name() const {
    return options_.head ? options_.head->table.substr(0, options_.head->table.rfind('.')) : "";
  }
  /// Returns the logits of a masked language model for each token: [B, T, vocab]. Throws UserError [encoder_part] if
  /// there is no output layer.
  Tensor logits(const EncoderInputs& inputs) const { return head(hidden_states(inputs).back()); }
  /// Returns the mean loss over labels i64 [B, T] other than -100, each for the token at its own position.
  Tensor loss(const EncoderInputs& inputs, const Tensor& labels) const;
  /// Applies the output layer to states of the last layer: [.., hidden] -> [.., vocab].
  Tensor head(const Tensor& states, Where at = Where::current()) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// Applies a layer and tanh to the first token's state: states of the last layer [B, T, hidden] -> [B, hidden].
  /// Throws UserError [encoder_part] if there is no such layer.
  Tensor pool(const Tensor& states, Where at = Where::current()) const;

  const Dim& width() const { return options_.attention.hidden; }
  /// Maximum number of tokens of a text.
  std::int64_t longest() const;
  /// The padding token, which positions do not count.
  std::int64_t padding() const { return options_.padding.value_or(0); }

 private:
  Tensor embed(const EncoderInputs& inputs) const;
  Tensor positions_of(const Tensor& ids) const;

  EncoderOptions options_;
  nn::Embedding words_, positions_;
  std::optional<nn::Embedding> types_;
  nn::LayerNorm norm_;
  std::vector<EncoderLayer> layers_;
  std::optional<nn::Linear> head_dense_, pooler_;
  std::optional<nn::LayerNorm> head_norm_;
  std::optional<nn::Parameter> head_table_, head_bias_;
};

/// Returns `head` if "architectures" names a model in `with_head`; nothing if it names a model in `without`, or if
/// the file lacks the key. Throws UserError [config_value] for any other model.
std::optional<EncoderOptions::Head> head_if(const Config& config, const std::vector<std::string>& with_head,
                                            const std::vector<std::string>& without,
                                            const EncoderOptions::Head& head);

}  // namespace lathe::pretrained
