// T5 (Raffel et al. 2020), 1.0 and 1.1: RMS norms before each sublayer, no score scaling, a learned bias by distance
// that the first layer of a stack holds for all its layers, no other biases.
#include <fmt/core.h>

#include <cmath>

#include "frontend/nn/attention/relative_bias.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/family.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "models/pretrained/transformer_layer.h"

namespace lathe::pretrained::families {

namespace {

Dim t5_hidden(const Config& config) { return size(config, "d_model", "hidden"); }

nn::NormOptions t5_norm(const Config& config) { return norm_options(config, "layer_norm_epsilon"); }

nn::SelfAttentionOptions t5_attention(const Config& config) {
  const Dim h = size(config, "num_heads", "h");
  return {.hidden = t5_hidden(config),
          .h = h,
          .kv = h,
          .d = size(config, "d_kv", "d"),
          .dtype = stored_dtype(config),
          .q_name = "q",
          .k_name = "k",
          .v_name = "v",
          .o_name = "o"};
}

nn::RelativeBiasOptions bias_options(const Config& config, bool is_decoder) {
  const std::string_view buckets = "relative_attention_num_buckets", distance = "relative_attention_max_distance";
  const nn::RelativeBiasOptions options{.dtype = stored_dtype(config),
                                        .buckets = config.integer(buckets),
                                        .max_distance = config.integer(distance),
                                        .bidirectional = !is_decoder};
  if (options.buckets < 4 || options.buckets > (1 << 20)) config.reject(buckets, "it is from 4 to 2^20");
  if (options.max_distance <= options.buckets / 2) config.reject(distance, "it is above half of the buckets");
  return options;
}

/// Parses "relu" or "gated-gelu": the activation and whether there is a gate.
struct Projection {
  explicit Projection(const Config& config) {
    const std::string_view key = "feed_forward_proj";
    const std::string text = config.text(key);
    is_gated = text.starts_with("gated-");
    std::string name = is_gated ? text.substr(6) : text;
    if (text == "gated-gelu") name = "gelu_new";
    const auto found = activation_named(name);
    if (!found) config.reject(key, "it is an activation, such as relu, or gated- and one, such as gated-gelu");
    function = *found;
    const bool agrees = config.boolean("is_gated_act", is_gated) == is_gated &&
                        activation_named(config.text("dense_act_fn", name)) == found;
    if (!agrees) config.reject(key, "is_gated_act and dense_act_fn say something else");
  }

  bool is_gated = false;
  nn::Activation function{};
};

TransformerLayerOptions t5_layer(const Config& config, bool is_decoder) {
  const Projection projection(config);
  TransformerLayerOptions options{.attention = t5_attention(config),
                                  .d_ff = size(config, "d_ff", "d_ff"),
                                  .feed_forward = nn::FeedForwardOptions{.dtype = stored_dtype(config),
                                                                         .activation = projection.function,
                                                                         .bias = false,
                                                                         .up = "wi",
                                                                         .down = "wo"},
                                  .norm = t5_norm(config),
                                  .attention_name = "layer.0.SelfAttention",
                                  .feed_forward_name = "layer.1.DenseReluDense",
                                  .attention_norm = "layer.0.layer_norm",
                                  .feed_forward_norm = "layer.1.layer_norm"};
  if (projection.is_gated)
    options.feed_forward = nn::GatedFeedForwardOptions{
        .dtype = stored_dtype(config), .activation = projection.function, .gate = "wi_0", .up = "wi_1", .down = "wo"};
  if (!is_decoder) return options;
  options.cross = {.name = "layer.1.EncDecAttention", .norm = "layer.1.layer_norm"};
  options.feed_forward_name = "layer.2.DenseReluDense";
  options.feed_forward_norm = "layer.2.layer_norm";
  return options;
}

/// An encoder or a decoder.
class Stack : public nn::Module {
 public:
  Stack(const Module& parent, std::string_view name, const Config& config, int layers, bool is_decoder)
      : Module(parent, name, "T5Stack"),
        bias_(*this, "block.0.layer.0.SelfAttention.relative_attention_bias", size(config, "num_heads", "h"),
              bias_options(config, is_decoder)),
        norm_(*this, "final_layer_norm", t5_hidden(config), t5_norm(config)) {
    for (int i = 0; i < layers; ++i)
      blocks_.emplace_back(*this, fmt::format("block.{}", i), t5_layer(config, is_decoder));
  }
  std::vector<Tensor> operator()(const Tensor& embedded, const nn::AttentionContext& plain,
                                 const Memory* memory) const {
    const Dim T = embedded.size(1);
    return run(embedded, plain.with_bias(bias_(embedded.graph(), T, T, embedded.dtype())), memory);
  }
  /// Decoder only: runs new tokens after those in the cache.
  Tensor step(const Tensor& embedded, const nn::KeyValueCache& cache, const Memory& memory) const {
    const Dim T = embedded.size(1);
    const Tensor positions = cache.positions_of(embedded.graph(), T);  // [T]
    const auto context = nn::AttentionContext(T, cache).with_bias(bias_(positions, cache.length, embedded.dtype()));
    return run(embedded, context, &memory).back();
  }
  void keep_source(const Tensor& memory, std::optional<DType> dtype) const {
    for (const TransformerLayer& block : blocks_) block.keep_source(memory, dtype);
  }

 private:
  std::vector<Tensor> run(const Tensor& embedded, const nn::AttentionContext& context, const Memory* memory) const {
    const LayerCall call{.context = context, .memory = memory};
    std::vector<Tensor> states{embedded};
    for (const TransformerLayer& block : blocks_) states.push_back(block(states.back(), call));
    states.back() = norm_(states.back());
    return states;
  }

  nn::RelativeBias bias_;
  std::vector<TransformerLayer> blocks_;
  nn::RmsNorm norm_;
};

class T5 final : public Seq2SeqLm {
 public:
  T5(const Config& config, const Differ& differ)
      : Seq2SeqLm(config, "T5"),
        shared_(*this, "shared", size(config, "vocab_size", "vocab"), t5_hidden(config),
                {.dtype = stored_dtype(config), .flat = false}),
        encoder_(*this, "encoder", config, layers_of(config, "num_layers"), false),
        decoder_(*this, "decoder", config,
                 layers_of(config, config.has("num_decoder_layers") ? "num_decoder_layers" : "num_layers"), true) {
    // transformers reads tie_word_embeddings only for this scale: the files decide which tables are tied.
    const bool is_tied = config.boolean("tie_word_embeddings", true);
    if (config.boolean("scale_decoder_outputs", is_tied)) scale_ = 1 / std::sqrt(config.real("d_model"));
    const std::string name = architecture(config);
    if (!name.empty() && name != "T5ForConditionalGeneration" && name != "T5WithLMHeadModel")
      reject_architecture(config, "T5ForConditionalGeneration");
    const auto is_separate = [&](const std::string& table) { return differ("shared.weight", table + ".weight"); };
    if (is_separate("encoder.embed_tokens")) encoder_table_.emplace(own_table("encoder.embed_tokens", config));
    if (is_separate("decoder.embed_tokens")) decoder_table_.emplace(own_table("decoder.embed_tokens", config));
    if (is_separate("lm_head"))
      head_ = nn::Linear(*this, "lm_head", t5_hidden(config), shared_.table().shape()[0],
                         {.dtype = stored_dtype(config), .bias = false});
  }

  const nn::Parameter& table() const override { return shared_.table(); }
  std::optional<nn::Linear> output_layer() const override { return head_; }
  std::string_view output_name() const override { return "lm_head"; }
  void keep_source(const Tensor& memory, std::optional<DType> dtype) const override {
    decoder_.keep_source(memory, dtype);
  }
  Tensor step(const Seq2SeqStep& step) const override {
    const Memory seen{step.source, nn::AttentionContext::bidirectional(step.mask)};
    return decoder_.step(embed(step.ids, step.dtype, true), step.cache, seen);
  }
  Tensor head(const Tensor& states) const override {
    const Tensor x = scale_ == 1 ? states : states * scale_;
    return head_ ? (*head_)(x) : nn::project(x, shared_.table());
  }

 private:
  nn::Embedding own_table(std::string_view name, const Config& config) const {
    return {
        *this, name, shared_.table().shape()[0], t5_hidden(config), {.dtype = stored_dtype(config), .flat = false}};
  }
  Tensor embed(const Tensor& ids, DType dtype, bool is_decoder) const override {
    const std::optional<nn::Embedding>& own = is_decoder ? decoder_table_ : encoder_table_;
    return (own ? *own : shared_)(ids).to(dtype);
  }
  std::vector<Tensor> encode(const Tensor& embedded, const std::optional<Tensor>& mask) const override {
    return encoder_(embedded, nn::AttentionContext::bidirectional(mask), nullptr);
  }
  std::vector<Tensor> decode(const Tensor& embedded, const std::optional<Tensor>& mask, const Tensor& memory,
                             const std::optional<Tensor>& memory_mask) const override {
    const Memory seen{memory, nn::AttentionContext::bidirectional(memory_mask)};
    return decoder_(embedded, nn::AttentionContext(embedded.size(1), mask), &seen);
  }

  nn::Embedding shared_;
  Stack encoder_, decoder_;
  double scale_ = 1;
  std::optional<nn::Embedding> encoder_table_, decoder_table_;
  std::optional<nn::Linear> head_;
};

std::unique_ptr<Seq2SeqLm> make_t5(const Config& config, const Differ& differ) {
  return std::make_unique<T5>(config, differ);
}

KeyTable t5_keys() {
  return KeyTable({base_keys(),
                   {
                       used("vocab_size", "32128"),
                       used("d_model", "512"),
                       alias("hidden_size", "d_model"),
                       used("d_kv", "64"),
                       alias("head_dim", "d_kv"),
                       used("d_ff", "2048"),
                       used("num_layers", "6"),
                       alias("num_hidden_layers", "num_layers"),
                       used("num_decoder_layers"),
                       used("num_heads", "8"),
                       alias("num_attention_heads", "num_heads"),
                       used("relative_attention_num_buckets", "32"),
                       used("relative_attention_max_distance", "128"),
                       used("layer_norm_epsilon", "1e-06"),
                       used("feed_forward_proj", "\"relu\""),
                       used("is_gated_act"),
                       used("dense_act_fn"),
                       used("scale_decoder_outputs"),
                       used("pad_token_id", "0"),
                       used("eos_token_id", "1"),
                       used("decoder_start_token_id"),
                       refused("is_encoder_decoder", "[true]", "Lathe reads T5 with both parts"),
                       harmless("dropout_rate", dropout_reason),
                       harmless("initializer_factor", initial_reason),
                       harmless("n_positions", unread_reason),
                       harmless("output_past", unread_reason),
                   }});
}

}  // namespace

/// Files store the shared table under one or several names. Older files have an unused bias of the decoder's
/// cross-attention.
Family t5() {
  return {.model_types = {"t5"},
          .keys = t5_keys(),
          .make = make_t5,
          .names = {.ignored = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
                                "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
                    .others = {{"shared.weight", "encoder.embed_tokens.weight"},
                               {"shared.weight", "decoder.embed_tokens.weight"},
                               {"shared.weight", "lm_head.weight"}}}};
}

}  // namespace lathe::pretrained::families
