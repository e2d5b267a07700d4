#include <fmt/core.h>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

Dim vit_hidden(const Config& config) { return size(config, "hidden_size", "hidden", 768); }

nn::NormOptions vit_norm(const Config& config) {
  return {.dtype = stored_dtype(config), .eps = config.real("layer_norm_eps", 1e-12)};
}

nn::SelfAttentionOptions vit_attention(const Config& config) {
  nn::SelfAttentionOptions options = even_heads(config, vit_hidden(config), "num_attention_heads");
  options.q_name = "attention.query";
  options.k_name = "attention.key";
  options.v_name = "attention.value";
  options.o_name = "output.dense";
  options.bias = config.boolean("qkv_bias", true);
  options.o_bias = true;
  return options;
}

/// Returns height (index 0) or width (index 1) of a size, which may be a single number for both.
std::int64_t side(const Config& config, std::string_view key, std::size_t index, std::int64_t fallback) {
  if (!config.is_list(key)) return config.integer(key, fallback);
  const std::vector<std::int64_t> both = config.integers(key);
  if (both.size() != 2) config.reject(key, "it is a number, or [height, width]");
  return both[index];
}

/// The size of the image along one axis, and that of its patches.
struct Side {
  Side(const Config& config, std::size_t index)
      : image(side(config, "image_size", index, 224)), patch(side(config, "patch_size", index, 16)) {
    if (patch < 1) config.reject("patch_size", "it is 1 or more");
    if (image < patch || image > (1 << 16) || image % patch != 0)
      config.reject("image_size", "it is a multiple of patch_size, up to 2^16");
  }
  std::int64_t image, patch;
  std::int64_t patches() const { return image / patch; }
};

Dim tokens(const Config& config) { return {"tokens", Side(config, 0).patches() * Side(config, 1).patches() + 1}; }

Shape patch_shape(const Config& config) {
  return {vit_hidden(config), size(config, "num_channels", "channels", 3), Dim("patch_h", Side(config, 0).patch),
          Dim("patch_w", Side(config, 1).patch)};
}

std::int64_t classes_of(const Config& config) {
  if (config.has("id2label")) return static_cast<std::int64_t>(config.object("id2label").keys().size());
  return config.integer("num_labels", 2);
}

[[noreturn]] void throw_part(const Where& at, std::string_view what) {
  throw UserError(Location(at), "image_model", fmt::format("this model has no {}", what), "encoder_part",
                  "its config.json and its tensors say which parts it has");
}

const KeyTable& vit_keys() {
  static const KeyTable table({base_keys(),
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
  return table;
}

const std::vector<FamilyRecord>& image_families() {
  static const std::vector<FamilyRecord> all{{"vit", vit_keys}};
  return all;
}

}  // namespace

ImageLayer::ImageLayer(const Module& parent, const Config& config, int index)
    : Module(parent, fmt::format("vit.encoder.layer.{}", index), "ImageLayer"),
      attention_(*this, "attention", vit_attention(config)),
      feed_forward_(*this, "", vit_hidden(config), size(config, "intermediate_size", "d_ff", 3072),
                    {.dtype = stored_dtype(config),
                     .activation = activation(config, "hidden_act", nn::Activation::gelu),
                     .up = "intermediate.dense",
                     .down = "output.dense"}),
      norm_before_(*this, "layernorm_before", vit_hidden(config), vit_norm(config)),
      norm_after_(*this, "layernorm_after", vit_hidden(config), vit_norm(config)) {}

Tensor ImageLayer::operator()(const Tensor& x, const nn::AttentionContext& context) const {
  const Tensor y = x + attention_(norm_before_(x), context);
  return y + feed_forward_(norm_after_(y));
}

ImageModel::ImageModel(const Config& config, bool has_pooler)
    : Module("Vit"),
      channels_(size(config, "num_channels", "channels", 3)),
      height_("height", Side(config, 0).image),
      width_("width", Side(config, 1).image),
      patch_height_("patch_h", Side(config, 0).patch),
      patch_width_("patch_w", Side(config, 1).patch),
      class_token_(declare("vit.embeddings.cls_token", stored_dtype(config), {1, 1, vit_hidden(config)},
                           Init::normal({.deviation = 0.02}), Where::current())),
      positions_(declare("vit.embeddings.position_embeddings", stored_dtype(config),
                         {1, tokens(config), vit_hidden(config)}, Init::normal({.deviation = 0.02}),
                         Where::current())),
      patches_(declare("vit.embeddings.patch_embeddings.projection.weight", stored_dtype(config), patch_shape(config),
                       Init::normal({.deviation = 0.02}), Where::current())),
      patch_bias_(declare("vit.embeddings.patch_embeddings.projection.bias", stored_dtype(config),
                          {vit_hidden(config)}, Init::zeros(), Where::current())),
      norm_(*this, "vit.layernorm", vit_hidden(config), vit_norm(config)),
      pooler_activation_(activation(config, "pooler_act", nn::Activation::tanh)) {
  const int count = layers_of(config, "num_hidden_layers", 12);
  for (int i = 0; i < count; ++i) layers_.emplace_back(*this, config, i);
  const std::string name = architecture(config);
  const nn::LinearOptions linear{.dtype = stored_dtype(config)};
  if (name == "ViTForImageClassification") {
    const std::int64_t classes = classes_of(config);
    if (classes < 1) config.reject("num_labels", "a classifier has 1 class or more");
    require_plain(config, "problem_type", config.text("problem_type", "") == "single_label_classification");
    classifier_.emplace(*this, "classifier", vit_hidden(config), Dim("classes", classes), linear);
  } else if (!name.empty() && name != "ViTModel") {
    reject_architecture(config, "ViTModel and ViTForImageClassification");
  } else if (has_pooler) {
    const Dim width =
        config.has("pooler_output_size") ? size(config, "pooler_output_size", "pooled") : vit_hidden(config);
    pooler_.emplace(*this, "vit.pooler.dense", vit_hidden(config), width, linear);
  }
}

/// [B, channels, height, width] -> [B, 1 + patches, hidden]. A convolution whose stride equals its kernel size is a
/// matmul.
Tensor ImageModel::embed(const Tensor& images) const {
  const Dim B = images.size(0), rows = *height_.divided_by(patch_height_), columns = *width_.divided_by(patch_width_);
  const Dim numbers = channels_ * patch_height_ * patch_width_, width = class_token_.shape()[2];
  const Tensor cut = images.view({B, channels_, rows, patch_height_, columns, patch_width_})
                         .permute({0, 2, 4, 1, 3, 5})
                         .reshape({B, rows * columns, numbers});
  const Tensor patches = linear(cut, patches_.as(cut).view({width, numbers}), patch_bias_.as(cut));
  const Tensor token = class_token_.as(cut).expand({B, 1, width});
  return concat({token, patches}, 1) + positions_.as(cut);
}

std::vector<Tensor> ImageModel::hidden_states(const Tensor& images, Where at) const {
  const CallSite line(images, at);
  if (images.rank() != 4 || !(images.shape() == image_shape(images.size(0))))
    throw UserError(
        Location(at), "image_model",
        fmt::format("images are {}, not {}", images.shape().to_string(), image_shape(Dim("B")).to_string()),
        "image_shape", "scale them to what the model was trained on");
  const auto context = nn::AttentionContext::bidirectional();
  std::vector<Tensor> all{embed(images).named("hidden_0")};
  for (const ImageLayer& layer : layers_)
    all.push_back(layer(all.back(), context).named(fmt::format("hidden_{}", all.size())));
  return all;
}

Tensor ImageModel::states(const Tensor& images, Where at) const {
  const CallSite line(images, at);
  return norm_(hidden_states(images).back());
}

Tensor ImageModel::logits(const Tensor& images, Where at) const {
  if (!classifier_) throw_part(at, "classes");
  const CallSite line(images, at);
  return (*classifier_)(states(images).select(1, 0));
}

Tensor ImageModel::loss(const Tensor& images, const Tensor& labels, Where at) const {
  return cross_entropy(logits(images, at), labels, -100, 0, at);
}

Tensor ImageModel::pool(const Tensor& images, Where at) const {
  if (!pooler_) throw_part(at, "pooler");
  const CallSite line(images, at);
  return nn::activate(pooler_activation_, (*pooler_)(states(images).select(1, 0)));
}

std::vector<FamilyRecord> image_records() { return image_families(); }

bool is_image_model(const Config& config) { return is_one_of(config, image_families()); }

PretrainedImageModel load_image_model(const std::filesystem::path& folder) {
  PretrainedImageModel loaded{{read_config(folder)}, nullptr};
  const TensorFolder tensors = TensorFolder::open(folder);
  const FamilyRecord& family = family_of(loaded.config, image_families(), ModelKind::image);
  const Config config = model_config(loaded.config, family.keys());
  check_counts(config, tensors.names().size());
  TensorNames names{.prefix = "vit."};
  loaded.model = std::make_unique<ImageModel>(config, has_tensor(tensors, "vit.pooler.dense.weight", names));
  if (loaded.model->has_classes())
    names.ignored = {"*.pooler.dense.weight", "*.pooler.dense.bias"};
  else
    names.ignored = {"classifier.weight", "classifier.bias"};
  take_weights(loaded, tensors, *loaded.model, names);
  return loaded;
}

}  // namespace lathe::pretrained
