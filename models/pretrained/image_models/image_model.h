#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "models/pretrained/pretrained.h"
#include "models/pretrained/transformer_layer.h"

/// Image models from Hugging Face files: ViT. A family is a function from config.json to ImageModelOptions.
namespace lathe::pretrained {

/// A model as its configuration describes it. Names are those in the files.
struct ImageModelOptions {
  std::string_view kind;  ///< name in messages: "Vit"
  Dim hidden, channels, height, width, patch_height, patch_width;
  DType dtype = f32;
  std::vector<TransformerLayerOptions> layers = {};
  nn::NormOptions norm = {};        ///< of the last layer's states
  std::string root;                 ///< prefix of all names except those of the classifier
  std::optional<Dim> classes = {};  ///< none: the model has no classifier
  std::optional<Dim> pooled = {};   ///< width of the pooler's output, if the model has one; a classifier excludes it
  nn::Activation pooler_activation = nn::Activation::tanh;
};

/// ViT (Dosovitskiy et al. 2021): an image is cut into patches, one token each, after a class token. Images are f32
/// or of the compute dtype: [B, channels, height, width], of the size in the configuration.
class ImageModel : public nn::Module {
 public:
  explicit ImageModel(const ImageModelOptions& options);

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
  std::string root_name() const { return has_classes() ? "" : options_.root + "."; }
  /// Returns the output of the layer applied to the class token's state: [B, width]. Throws UserError [encoder_part]
  /// if there is no such layer.
  Tensor pool(const Tensor& images, Where at = Where::current()) const;

  /// Returns the shape of images, [B, channels, height, width].
  Shape image_shape(const Dim& B) const { return {B, options_.channels, options_.height, options_.width}; }

 private:
  Tensor embed(const Tensor& images) const;
  nn::Parameter declare_table(std::string_view name, const Shape& shape);

  ImageModelOptions options_;
  nn::Parameter class_token_, positions_, patches_, patch_bias_;
  std::vector<TransformerLayer> layers_;
  nn::LayerNorm norm_;
  std::optional<nn::Linear> classifier_, pooler_;
};

}  // namespace lathe::pretrained
