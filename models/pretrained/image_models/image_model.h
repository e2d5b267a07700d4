#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "models/pretrained/pretrained.h"

/// Image models from Hugging Face files: ViT.
namespace lathe::pretrained {

/// x + attention(norm(x)), then x + feed_forward(norm(x)).
class ImageLayer : public nn::Module {
 public:
  ImageLayer(const Module& parent, const Config& config, int index);
  Tensor operator()(const Tensor& x, const nn::AttentionContext& context) const;

 private:
  nn::SelfAttention attention_;
  nn::FeedForward feed_forward_;
  nn::LayerNorm norm_before_, norm_after_;
};

/// ViT (Dosovitskiy et al. 2021): an image is cut into patches, one token each, after a class token. Images are f32
/// or of the compute dtype: [B, channels, height, width], of the size in the configuration.
class ImageModel : public nn::Module {
 public:
  /// `has_pooler`: the files hold the layer applied to the class token; only a model without classes can have it.
  ImageModel(const Config& config, bool has_pooler);

  /// Returns the embeddings and the output of each layer, before the final norm: [B, 1 + patches, hidden] each.
  /// Throws UserError [image_shape] for images of other sizes.
  std::vector<Tensor> hidden_states(const Tensor& images, Where at = Where::current()) const;
  /// Returns the states of the last layer after the final norm.
  Tensor states(const Tensor& images, Where at = Where::current()) const;

  bool has_classes() const { return classifier_.has_value(); }
  /// Returns the logits [B, classes]. Throws UserError [encoder_part] if the model has no classes.
  Tensor logits(const Tensor& images, Where at = Where::current()) const;
  /// Returns the mean loss over labels i64 [B] other than -100.
  Tensor loss(const Tensor& images, const Tensor& labels, Where at = Where::current()) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// Returns the prefix that Hugging Face omits from names if the model has no classes: "vit."; empty if it has
  /// classes.
  std::string root_name() const { return has_classes() ? "" : "vit."; }
  /// Returns the output of the layer applied to the class token's state: [B, width]. Throws UserError [encoder_part]
  /// if there is no such layer.
  Tensor pool(const Tensor& images, Where at = Where::current()) const;

  /// Returns the shape of images, [B, channels, height, width].
  Shape image_shape(const Dim& B) const { return {B, channels_, height_, width_}; }

 private:
  Tensor embed(const Tensor& images) const;

  Dim channels_, height_, width_, patch_height_, patch_width_;
  nn::Parameter class_token_, positions_, patches_, patch_bias_;
  std::vector<ImageLayer> layers_;
  nn::LayerNorm norm_;
  std::optional<nn::Linear> classifier_, pooler_;
  nn::Activation pooler_activation_;
};

using PretrainedImageModel = PretrainedModel<ImageModel>;

/// Loads a ViT directory. "architectures" decides whether the model has classes:
///
///   auto vit = pretrained::load_image_model("vit-base-patch16-224");
///   Graph g{"classes"};
///   const Tensor images = g.input("pixel_values", f32, vit.model->image_shape(Dim("B")));
///   g.output("logits", vit.model->logits(images));
///
/// Throws the UserErrors of load().
PretrainedImageModel load_image_model(const std::filesystem::path& folder);

/// Whether a configuration is that of a known image model.
bool is_image_model(const Config& config);

}  // namespace lathe::pretrained
