#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "frontend/pretrained/pretrained.h"

/// Encoders as Hugging Face's files describe them: BERT, RoBERTa, DistilBERT. A family is a function from config.json
/// to EncoderOptions, and a line in load_encoder.cpp.
namespace lathe::pretrained {

/// What an encoder reads in one call.
struct EncoderInputs {
  Tensor ids;                            ///< i64 [B, T]
  std::optional<Tensor> mask = {};       ///< i64 [B, T]: 0 for padding; none: no padding
  std::optional<Tensor> types = {};      ///< i64 [B, T], the segment of each token; none: 0
  std::optional<Tensor> positions = {};  ///< i64 [B, T]; none: as the family counts them
  DType dtype = f32;                     ///< to compute in, whatever the weights are stored in
};

/// What files call the parts of a layer: all that layers of different families differ in.
struct EncoderLayerNames {
  std::string_view q, k, v, o;  ///< within "attention"
  std::string_view attention_norm, up, down, output_norm;
};

/// What families differ in. Names are those that the files have.
struct EncoderOptions {
  std::string_view kind;
  Dim vocab, positions, d_ff;
  std::optional<Dim> types = {};  ///< how many segments there are; none: the model does not tell them apart
  std::optional<std::int64_t> padding =
      {};  ///< positions count tokens but this one, from this id + 1; none: all, from 0
  int layers = 12;
  nn::Activation activation = nn::Activation::gelu;
  double norm_eps = 1e-12;

  std::string embeddings, layer;       ///< above the tables; above the number of a layer
  nn::SelfAttentionOptions attention;  ///< but for its names
  EncoderLayerNames names;

  /// The output layer of a masked language model: table(norm(activation(dense(x)))) + bias.
  struct Head {
    std::string dense, norm, table, bias;
    nn::Activation activation = nn::Activation::gelu;
    bool is_tied = true;  ///< the table is that of the embeddings
  };
  std::optional<Head> head = {};
  std::string pooler = {};  ///< the layer after the first token's state; empty: none
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

/// Embeddings of tokens, positions and segments, a norm, layers; an output layer and a pooler where the files have
/// them.
class Encoder : public nn::Module {
 public:
  explicit Encoder(const EncoderOptions& options);

  /// The embeddings, and the output of each layer: [B, T, hidden] each. UserError [encoder_part] for segments where
  /// the model does not tell them apart.
  std::vector<Tensor> hidden_states(const EncoderInputs& inputs) const;

  bool has_head() const { return head_dense_.has_value(); }
  /// What starts names but those of the output layer, and what Hugging Face's names lack where there is none:
  /// "bert."; empty where there is one.
  std::string root_name() const;
  /// The table of embeddings, where it is the output layer's too.
  std::optional<nn::Parameter> tied() const {
    return options_.head && options_.head->is_tied ? head_table_ : std::nullopt;
  }
  /// Of each token, that of a masked language model: [B, T, vocab]. UserError [encoder_part] where there is no output
  /// layer.
  Tensor logits(const EncoderInputs& inputs) const { return head(hidden_states(inputs).back()); }
  /// The mean over labels i64 [B, T] other than -100, each for the token at its own position.
  Tensor loss(const EncoderInputs& inputs, const Tensor& labels) const;
  /// Of hidden states of the last layer: [.., hidden] -> [.., vocab].
  Tensor head(const Tensor& states, Where at = Where::current()) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// tanh of a layer after the first token's state: hidden states of the last layer [B, T, hidden] -> [B, hidden].
  /// UserError [encoder_part] where there is none.
  Tensor pool(const Tensor& states, Where at = Where::current()) const;

  const Dim& width() const { return options_.attention.hidden; }
  /// How many tokens a text can have at most.
  std::int64_t longest() const;
  /// The token that fills up rows: positions do not count it.
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

using PretrainedEncoder = PretrainedModel<Encoder>;

/// Reads the directory of a BERT, RoBERTa or DistilBERT. "architectures" says whether it has the output layer of a
/// masked language model:
///
///   auto bert = pretrained::load_encoder("bert-base-uncased");
///   Graph g{"states"};
///   const Shape shape{Dim("B"), Dim("T")};
///   const pretrained::EncoderInputs inputs{.ids = g.input("input_ids", i64, shape),
///                                          .mask = g.input("attention_mask", i64, shape)};
///   g.output("states", bert.model->hidden_states(inputs).back());
///   Executable exe = compile(g.finish(), {.parameters = bert.weights});
///
/// An output layer with other values than the embeddings has a table of its own, whatever tie_word_embeddings says.
/// UserErrors are those of load().
PretrainedEncoder load_encoder(const std::filesystem::path& folder);

/// Whether a configuration is one of these models'.
bool is_encoder(const Config& config);

/// A family's options, and how its files name tensors.
struct DescribedEncoder {
  EncoderOptions options;
  TensorNames names;
};
DescribedEncoder describe_bert(const Config& config);
DescribedEncoder describe_roberta(const Config& config);  ///< and XLM-RoBERTa
DescribedEncoder describe_distilbert(const Config& config);
const KeyTable& bert_keys();
const KeyTable& roberta_keys();
const KeyTable& distilbert_keys();

}  // namespace lathe::pretrained
