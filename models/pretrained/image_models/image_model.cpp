#include "models/pretrained/image_models/image_model.h"

#include <fmt/core.h>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "models/pretrained/image_models/image_model_options.h"

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

struct ImageModel::Parts {
  /// [B, channels, height, width] -> [B, 1 + patches, hidden]
  Tensor embed(const Tensor& images) const;

  ImageModelOptions options;
  nn::Parameter class_token, positions, patches, patch_bias;
  nn::LayerNorm norm;
  std::vector<TransformerLayer> layers = {};
  std::optional<nn::Linear> classifier = {}, pooler = {};
};

ImageModel::ImageModel(const ImageModelOptions& o) : Module(o.kind) {
  const auto declared = [&](std::string_view name, const Shape& shape, const Init& init) {
    return declare(fmt::format("{}.embeddings.{}", o.root, name), o.dtype, shape, init, Where::current());
  };
  const Init normal = Init::normal({.deviation = 0.02});
  // The parameters are declared in this order.
  auto parts = std::make_shared<Parts>(
      Parts{.options = o,
            .class_token = declared("cls_token", {1, 1, o.hidden}, normal),
            .positions = declared("position_embeddings", {1, tokens_of(o), o.hidden}, normal),
            .patches = declared("patch_embeddings.projection.weight",
                                {o.hidden, o.channels, o.patch_height, o.patch_width}, normal),
            .patch_bias = declared("patch_embeddings.projection.bias", {o.hidden}, Init::zeros()),
            .norm = nn::LayerNorm(*this, fmt::format("{}.layernorm", o.root), o.hidden, o.norm)});
  for (std::size_t i = 0; i < o.layers.size(); ++i)
    parts->layers.emplace_back(*this, fmt::format("{}.encoder.layer.{}", o.root, i), o.layers[i]);
  const nn::LinearOptions linear{.dtype = o.dtype};
  if (o.classes)
    parts->classifier = nn::Linear(*this, "classifier", o.hidden, *o.classes, linear);
  else if (o.pooled)
    parts->pooler = nn::Linear(*this, fmt::format("{}.pooler.dense", o.root), o.hidden, *o.pooled, linear);
  parts_ = std::move(parts);
}

bool ImageModel::has_classes() const { return parts_->classifier.has_value(); }
bool ImageModel::has_pooler() const { return parts_->pooler.has_value(); }
std::string ImageModel::root_name() const { return has_classes() ? "" : parts_->options.root + "."; }
Shape ImageModel::image_shape(const Dim& B) const {
  const ImageModelOptions& options = parts_->options;
  return {B, options.channels, options.height, options.width};
}

/// A convolution whose stride equals its kernel size is a matmul.
Tensor ImageModel::Parts::embed(const Tensor& images) const {
  const ImageModelOptions& o = options;
  const Dim B = images.size(0), rows = rows_of(o), columns = columns_of(o);
  const Dim numbers = o.channels * o.patch_height * o.patch_width;
  const Tensor cut = images.view({B, o.channels, rows, o.patch_height, columns, o.patch_width})
                         .permute({0, 2, 4, 1, 3, 5})
                         .reshape({B, rows * columns, numbers});
  const Tensor tokens = linear(cut, patches.as(cut).view({o.hidden, numbers}), patch_bias.as(cut));
  const Tensor token = class_token.as(cut).expand({B, 1, o.hidden});
  return concat({token, tokens}, 1) + positions.as(cut);
}

std::vector<Tensor> ImageModel::hidden_states(const Tensor& images, Where at) const {
  const CallSite line(images, at);
  if (images.rank() != 4 || !(images.shape() == image_shape(images.size(0))))
    throw UserError(
        Location(at), "image_model",
        fmt::format("images are {}, not {}", images.shape().to_string(), image_shape(Dim("B")).to_string()),
        "image_shape", "scale them to what the model was trained on");
  const LayerCall call{.context = nn::AttentionContext::bidirectional()};
  std::vector<Tensor> all{parts_->embed(images).named("hidden_0")};
  for (const TransformerLayer& layer : parts_->layers)
    all.push_back(layer(all.back(), call).named(fmt::format("hidden_{}", all.size())));
  return all;
}

Tensor ImageModel::states(const Tensor& images, Where at) const {
  const CallSite line(images, at);
  return parts_->norm(hidden_states(images).back());
}

Tensor ImageModel::logits(const Tensor& images, Where at) const {
  if (!has_classes()) throw_part(at, "classes");
  const CallSite line(images, at);
  return (*parts_->classifier)(states(images).select(1, 0));
}

Tensor ImageModel::loss(const Tensor& images, const Tensor& labels, Where at) const {
  return cross_entropy(logits(images, at), labels, -100, 0, at);
}

Tensor ImageModel::pool(const Tensor& images, Where at) const {
  if (!has_pooler()) throw_part(at, "pooler");
  const CallSite line(images, at);
  return nn::activate(parts_->options.pooler_activation, (*parts_->pooler)(states(images).select(1, 0)));
}

}  // namespace lathe::pretrained
