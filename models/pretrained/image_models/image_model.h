#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/pretrained/pretrained.h"

/// Image models from Hugging Face files: ViT. A family is a function from config.json to ImageModelOptions
/// (image_model_options.h).
namespace lathe::pretrained {

struct ImageModelOptions;

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

  bool has_classes() const;
  /// Returns the logits [B, classes]. Throws UserError [encoder_part] if the model has no classes.
  Tensor logits(const Tensor& images, Where at = Where::current()) const;
  /// Returns the mean loss over labels i64 [B] other than -100.
  Tensor loss(const Tensor& images, const Tensor& labels, Where at = Where::current()) const;

  bool has_pooler() const;
  /// Returns the prefix that Hugging Face omits from names if the model has no classes: "vit."; empty if it has
  /// classes.
  std::string root_name() const;
  /// Returns the output of the layer applied to the class token's state: [B, width]. Throws UserError [encoder_part]
  /// if there is no such layer.
  Tensor pool(const Tensor& images, Where at = Where::current()) const;

  /// Returns the shape of images, [B, channels, height, width].
  Shape image_shape(const Dim& B) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace lathe::pretrained
