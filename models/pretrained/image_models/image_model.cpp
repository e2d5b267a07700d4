#include "models/pretrained/image_models/image_model.h"

#include <fmt/core.h>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"

namespace lathe::pretrained {

namespace {

[[noreturn]] void throw_part(const Where& at, std::string_view what) {
  throw UserError(Location(at), "image_model", fmt::format("this model has no {}", what), "encoder_part",
                  "its config.json and its tensors say which parts it has");
}

Dim rows_of(const ImageModelOptions& options) { return options.height / options.patch_height; }
Dim columns_of(const ImageModelOptions& options) { return options.width / options.patch_width; }

Dim tokens_of(const ImageModelOptions& options) {
  return {"tokens", rows_of(options).number() * columns_of(options).number() + 1};
}

}  // namespace

ImageModel::ImageModel(const ImageModelOptions& o)
    : Module(o.kind),
      options_(o),
      class_token_(declare_table("cls_token", {1, 1, o.hidden})),
      positions_(declare_table("position_embeddings", {1, tokens_of(o), o.hidden})),
      patches_(
          declare_table("patch_embeddings.projection.weight", {o.hidden, o.channels, o.patch_height, o.patch_width})),
      patch_bias_(declare(fmt::format("{}.embeddings.patch_embeddings.projection.bias", o.root), o.dtype, {o.hidden},
                          Init::zeros(), Where::current())),
      norm_(*this, fmt::format("{}.layernorm", o.root), o.hidden, o.norm) {
  for (std::size_t i = 0; i < o.layers.size(); ++i)
    layers_.emplace_back(*this, fmt::format("{}.encoder.layer.{}", o.root, i), o.layers[i]);
  const nn::LinearOptions linear{.dtype = o.dtype};
  if (o.classes)
    classifier_.emplace(*this, "classifier", o.hidden, *o.classes, linear);
  else if (o.pooled)
    pooler_.emplace(*this, fmt::format("{}.pooler.dense", o.root), o.hidden, *o.pooled, linear);
}

nn::Parameter ImageModel::declare_table(std::string_view name, const Shape& shape) {
  return declare(fmt::format("{}.embeddings.{}", options_.root, name), options_.dtype, shape,
                 Init::normal({.deviation = 0.02}), Where::current());
}

/// [B, channels, height, width] -> [B, 1 + patches, hidden]. A convolution whose stride equals its kernel size is a
/// matmul.
Tensor ImageModel::embed(const Tensor& images) const {
  const ImageModelOptions& o = options_;
  const Dim B = images.size(0), rows = rows_of(options_), columns = columns_of(options_);
  const Dim numbers = o.channels * o.patch_height * o.patch_width;
  const Tensor cut = images.view({B, o.channels, rows, o.patch_height, columns, o.patch_width})
                         .permute({0, 2, 4, 1, 3, 5})
                         .reshape({B, rows * columns, numbers});
  const Tensor patches = linear(cut, patches_.as(cut).view({o.hidden, numbers}), patch_bias_.as(cut));
  const Tensor token = class_token_.as(cut).expand({B, 1, o.hidden});
  return concat({token, patches}, 1) + positions_.as(cut);
}

std::vector<Tensor> ImageModel::hidden_states(const Tensor& images, Where at) const {
  const CallSite line(images, at);
  if (images.rank() != 4 || !(images.shape() == image_shape(images.size(0))))
    throw UserError(
        Location(at), "image_model",
        fmt::format("images are {}, not {}", images.shape().to_string(), image_shape(Dim("B")).to_string()),
        "image_shape", "scale them to what the model was trained on");
  const LayerCall call{.context = nn::AttentionContext::bidirectional()};
  std::vector<Tensor> all{embed(images).named("hidden_0")};
  for (const TransformerLayer& layer : layers_)
    all.push_back(layer(all.back(), call).named(fmt::format("hidden_{}", all.size())));
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
  return nn::activate(options_.pooler_activation, (*pooler_)(states(images).select(1, 0)));
}

}  // namespace lathe::pretrained
