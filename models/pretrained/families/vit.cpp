// ViT (Dosovitskiy et al. 2021): an image is cut into patches, one token each, after a class token.
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/family.h"
#include "models/pretrained/image_models/image_model_options.h"

namespace lathe::pretrained::families {

namespace {

/// Returns height (index 0) or width (index 1) of a size, which may be a single number for both.
std::int64_t side(const Config& config, std::string_view key, std::size_t index) {
  if (!config.is_list(key)) return config.integer(key);
  const std::vector<std::int64_t> both = config.integers(key);
  if (both.size() != 2) config.reject(key, "it is a number, or [height, width]");
  return both[index];
}

/// The size of the image along one axis, and that of its patches.
struct Side {
  Side(const Config& config, std::size_t index)
      : image(side(config, "image_size", index)), patch(side(config, "patch_size", index)) {
    if (patch < 1) config.reject("patch_size", "it is 1 or more");
    if (image < patch || image > (1 << 16) || image % patch != 0)
      config.reject("image_size", "it is a multiple of patch_size, up to 2^16");
  }
  std::int64_t image, patch;
};

std::int64_t classes_of(const Config& config) {
  if (config.has("id2label")) return static_cast<std::int64_t>(config.object("id2label").keys().size());
  return config.integer("num_labels", 2);
}

TransformerLayerOptions vit_layer(const Config& config, const Dim& hidden) {
  TransformerLayerOptions options{
      .attention = even_heads(config, hidden, "num_attention_heads"),
      .d_ff = size(config, "intermediate_size", "d_ff"),
      .feed_forward = nn::FeedForwardOptions{.dtype = stored_dtype(config),
                                             .activation = activation(config, "hidden_act"),
                                             .up = "intermediate.dense",
                                             .down = "output.dense"},
      .norm_kind = NormKind::layer,
      .norm = norm_options(config, "layer_norm_eps"),
      .attention_name = "attention",
      .feed_forward_name = "",
      .attention_norm = "layernorm_before",
      .feed_forward_norm = "layernorm_after"};
  options.attention.q_name = "attention.query";
  options.attention.k_name = "attention.key";
  options.attention.v_name = "attention.value";
  options.attention.o_name = "output.dense";
  options.attention.bias = config.boolean("qkv_bias", true);
  options.attention.o_bias = true;
  return options;
}

ImageModelOptions describe_vit(const Config& config) {
  const Dim hidden = size(config, "hidden_size", "hidden");
  const Side height(config, 0), width(config, 1);
  ImageModelOptions options{.kind = "Vit",
                            .hidden = hidden,
                            .channels = size(config, "num_channels", "channels"),
                            .height = Dim("height", height.image),
                            .width = Dim("width", width.image),
                            .patch_height = Dim("patch_h", height.patch),
                            .patch_width = Dim("patch_w", width.patch),
                            .dtype = stored_dtype(config),
                            .norm = norm_options(config, "layer_norm_eps"),
                            .root = "vit"};
  options.layers.assign(static_cast<std::size_t>(layers_of(config, "num_hidden_layers")), vit_layer(config, hidden));
  const std::string name = architecture(config);
  if (name == "ViTForImageClassification") {
    const std::int64_t classes = classes_of(config);
    if (classes < 1) config.reject("num_labels", "a classifier has 1 class or more");
    require_plain(config, "problem_type", config.text("problem_type", "") == "single_label_classification");
    options.classes = Dim("classes", classes);
  } else if (!name.empty() && name != "ViTModel") {
    reject_architecture(config, "ViTModel and ViTForImageClassification");
  }
  options.pooled = config.has("pooler_output_size") ? size(config, "pooler_output_size", "pooled") : hidden;
  options.pooler_activation = activation(config, "pooler_act");
  return options;
}

KeyTable vit_keys() {
  return KeyTable({base_keys(),
                   {
                       used("hidden_size", "768"),
                       used("num_hidden_layers", "12"),
                       used("num_attention_heads", "12"),
                       used("intermediate_size", "3072"),
                       used("hidden_act", "\"gelu\""),
                       used("layer_norm_eps", "1e-12"),
                       used("image_size", "224"),
                       used("patch_size", "16"),
                       used("num_channels", "3"),
                       used("qkv_bias", "true"),
                       used("pooler_output_size"),
                       used("pooler_act", "\"tanh\""),
                       used("id2label"),
                       used("num_labels"),
                       used("problem_type"),
                       harmless("tie_word_embeddings", "the model has no words"),
                       harmless("eos_token_id", "the model has no words"),
                       harmless("encoder_stride", other_head_reason),
                       harmless("hidden_dropout_prob", dropout_reason),
                       harmless("attention_probs_dropout_prob", dropout_reason),
                   }});
}

}  // namespace

Family vit() {
  return {.model_types = {"vit"}, .keys = vit_keys(), .make = describe_vit, .names = {.prefix = "vit."}};
}

}  // namespace lathe::pretrained::families
