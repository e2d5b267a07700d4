#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "frontend/pretrained/pretrained.h"

/// Models of images as Hugging Face's files describe them: ViT.
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

/// ViT (Dosovitskiy et al. 2021): an image is cut into patches, each a token; a class token stands before them.
/// Images are f32 or whatever is computed in: [B, channels, height, width], as large as the configuration says.
class ImageModel : public nn::Module {
 public:
  /// `has_pooler`: the files hold the layer after the class token that a model without classes can have.
  ImageModel(const Config& config, bool has_pooler);

  /// The embeddings, and the output of each layer, before the final norm: [B, 1 + patches, hidden] each. UserError
  /// [image_shape] for images of other sizes.
  std::vector<Tensor> hidden_states(const Tensor& images, Where at = Where::current()) const;
  /// The last of them after the final norm.
  Tensor states(const Tensor& images, Where at = Where::current()) const;

  bool has_classes() const { return classifier_.has_value(); }
  /// [B, classes]. UserError [encoder_part] where the model has no classes.
  Tensor logits(const Tensor& images, Where at = Where::current()) const;
  /// The mean over labels i64 [B] other than -100.
  Tensor loss(const Tensor& images, const Tensor& labels, Where at = Where::current()) const;

  bool has_pooler() const { return pooler_.has_value(); }
  /// What starts names, and what Hugging Face's names lack where the model has no classes; else empty.
  std::string root_name() const { return has_classes() ? "" : "vit."; }
  /// What the layer after the class token's state gives: [B, width]. UserError [encoder_part] where there is none.
  Tensor pool(const Tensor& images, Where at = Where::current()) const;

  /// [B, channels, height, width] of the images.
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

/// Reads the directory of a ViT. "architectures" says whether it tells classes apart:
///
///   auto vit = pretrained::load_image_model("vit-base-patch16-224");
///   Graph g{"classes"};
///   const Tensor images = g.input("pixel_values", f32, vit.model->image_shape(Dim("B")));
///   g.output("logits", vit.model->logits(images));
///
/// UserErrors are those of load().
PretrainedImageModel load_image_model(const std::filesystem::path& folder);

/// Whether a configuration is one of these models'.
bool is_image_model(const Config& config);

}  // namespace lathe::pretrained
