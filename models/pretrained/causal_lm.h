#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/nn/experts.h"
#include "frontend/nn/self_attention.h"
#include "models/pretrained/model_files.h"

/// Decoder-only language models from Hugging Face files. A family is a source file, built from the blocks of
/// frontend/nn, and a line in causal_lm.cpp.
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

/// State shared by all layers of a call.
struct Call {
  nn::AttentionContext context;
  std::vector<nn::RotaryTables> tables = {};  ///< one for each of the family's ropes
  nn::Dispatch dispatch = nn::Dispatch::automatic;
  std::vector<Tensor>* routers = nullptr;  ///< collects the probabilities of each mixture of experts, unless null
};

/// The loss that spreads tokens evenly over experts (Fedus et al. 2022). It is added to the loss of the labels.
struct RouterLoss {
  double factor = 0;        ///< 0: none
  std::int64_t chosen = 0;  ///< experts per token
};

/// A language model: embedding, layers, norm, output layer.
class CausalLm : public nn::Module {
 public:
  virtual ~CausalLm() = default;

  /// Returns the embeddings and the output of each layer, the last one after the final norm: [B, T, hidden] each.
  std::vector<Tensor> hidden_states(const TokenInputs& inputs) const { return hidden_states(inputs, nullptr); }
  /// Returns the logits [B, T, vocab] of the token after each one.
  Tensor logits(const TokenInputs& inputs) const { return head(hidden_states(inputs).back()); }
  /// Applies the output layer to states of the last layer [.., hidden]: [.., vocab].
  virtual Tensor head(const Tensor& x) const;
  /// Returns the mean loss over labels i64 [B, T] other than -100. A label is the token at its own position:
  /// logits[i] predicts labels[i + 1]. Includes router_loss() if the model has one.
  Tensor loss(const TokenInputs& inputs, const Tensor& labels) const;
  /// Returns the sum of the losses of these labels times `weight`, a float scalar; at least one label must not be
  /// -100. With weight 1 / n, where n counts the labels in all batches of an update, the batch losses add up to the
  /// loss of one large batch.
  Tensor loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const;

  virtual RouterLoss router_loss() const { return {}; }

  /// Number of positions that the model was trained for, according to its configuration; nothing if that has no
  /// value.
  std::optional<std::int64_t> context_length() const { return context_length_; }
  /// Maximum number of positions, if they are in a table; nothing if positions are computed.
  std::optional<std::int64_t> most_positions() const { return has_position_table() ? context_length_ : std::nullopt; }
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
  /// The output layer, if it is not tied to the embeddings.
  const std::optional<nn::Linear>& output_layer() const { return head_; }

 protected:
  struct Names {
    std::string_view embed, norm, head;
  };
  CausalLm(const Config& config, const Names& names, std::string_view kind);

  /// Rotary embeddings that the layers select from; none for models with other position encodings.
  virtual std::vector<nn::RopeOptions> ropes() const { return {}; }
  virtual Dim rotary_dim() const { return 0; }
  virtual bool has_position_table() const { return false; }
  virtual Tensor embed(const TokenInputs& inputs, const Tensor& positions) const;
  virtual int layers() const = 0;
  virtual Tensor layer(int index, const Tensor& x, const Call& call) const = 0;
  virtual Tensor final_norm(const Tensor& x) const = 0;

  const nn::Embedding& embedding() const { return embed_; }

 private:
  static Tensor positions_of(const TokenInputs& inputs);
  std::vector<Tensor> hidden_states(const TokenInputs& inputs, std::vector<Tensor>* routers) const;
  std::optional<Tensor> lengths_of(const TokenInputs& inputs, const Tensor& positions) const;

  std::optional<std::int64_t> context_length_;
  nn::Embedding embed_;
  std::optional<nn::Linear> head_;
};

/// A model whose layers are all of one kind: Layer(parent, config, index) is called as layer(x, call). Norm is the
/// norm before the output layer.
template <class Layer, class Norm>
class DecoderStack : public CausalLm {
 public:
  struct Options {
    Names names;
    std::string_view kind;
    nn::NormOptions norm;
    std::string_view layers_key = "num_hidden_layers";
    std::vector<nn::RopeOptions> ropes = {};
    Dim rotary_dim = 0;
  };
  DecoderStack(const Config& config, const Options& options)
      : CausalLm(config, options.names, options.kind),
        norm_(*this, options.names.norm, embedding().table().shape()[1], options.norm),
        ropes_(options.ropes),
        rotary_dim_(options.rotary_dim) {
    const std::int64_t count = config.integer(options.layers_key);
    if (count < 1 || count > 10000) config.reject(options.layers_key, "a model has from 1 to 10000 layers");
    for (int i = 0; i < static_cast<int>(count); ++i) layers_.emplace_back(*this, config, i);
  }

 private:
  std::vector<nn::RopeOptions> ropes() const final { return ropes_; }
  Dim rotary_dim() const final { return rotary_dim_; }
  int layers() const final { return static_cast<int>(layers_.size()); }
  Tensor layer(int i, const Tensor& x, const Call& call) const final {
    return layers_[static_cast<std::size_t>(i)](x, call);
  }
  Tensor final_norm(const Tensor& x) const final { return norm_(x); }

  Norm norm_;
  std::vector<nn::RopeOptions> ropes_;
  Dim rotary_dim_;
  std::vector<Layer> layers_;
};

/// A model of the family that model_type in config.json names, and the tensor names of that family's files.
struct MadeCausalLm {
  std::unique_ptr<CausalLm> model;
  TensorNames names;
};
/// Creates the model. If the files of a model with tied tables hold an output layer that differs from the embeddings,
/// it is untied, as in transformers: tie_word_embeddings becomes false in `files`. Throws UserError [config_value]
/// for an unknown family or option.
MadeCausalLm make_causal_lm(ModelFiles& files, const TensorFolder& tensors);

// The families.
std::unique_ptr<CausalLm> make_llama(const Config& config);  ///< Llama, Mistral, Qwen2, Qwen3
std::unique_ptr<CausalLm> make_mixtral(const Config& config);
std::unique_ptr<CausalLm> make_phi3(const Config& config);
std::unique_ptr<CausalLm> make_olmo2(const Config& config);
std::unique_ptr<CausalLm> make_gemma(const Config& config);  ///< Gemma 2, Gemma 3 (text)
std::unique_ptr<CausalLm> make_gpt_neox(const Config& config);
std::unique_ptr<CausalLm> make_gpt2(const Config& config);

// The key tables of the families.
const KeyTable& llama_keys();
const KeyTable& mistral_keys();
const KeyTable& qwen2_keys();
const KeyTable& qwen3_keys();
const KeyTable& mixtral_keys();
const KeyTable& phi3_keys();
const KeyTable& olmo2_keys();
const KeyTable& gemma2_keys();
const KeyTable& gemma3_keys();
const KeyTable& gpt_neox_keys();
const KeyTable& gpt2_keys();

}  // namespace lathe::pretrained
