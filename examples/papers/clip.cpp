#include "examples/papers/papers.h"
#include "examples/papers/transformer.h"

/// CLIP (Radford et al. 2021, figure 3): an encoder of images and one of texts, trained so that each image is the
/// nearest to its own text among all pairs of the batch, and the reverse.
namespace lathe::papers {

Tensor clip(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, T{"T", size.length}, d{"d", size.width}, h{"h", size.heads}, joint = d / 2;
  const Tensor images = g.input("images", size.dtype, {B, 3, T, T}), texts = g.input("texts", i64, {B, T});

  const nn::Conv2d patches(root, "patches", 3, d, {.size = 4, .stride = 4});
  const nn::Embedding tokens(root, "tokens", size.vocabulary, d), positions(root, "positions", T, d);
  const Blocks image_encoder(root, "image_encoder", size.layers, d, h),
      text_encoder(root, "text_encoder", size.layers, d, h);
  const nn::Linear image_projection(root, "image_projection", d, joint, {.bias = false}),
      text_projection(root, "text_projection", d, joint, {.bias = false});

  const Tensor patch = patches(images).flatten(2, 3).transpose(1, 2);  // [B, patches, d]
  const Tensor image = normalize(image_projection(image_encoder(patch, false).mean(1)));
  const Tensor words = tokens(texts) + positions.table().here();
  const Tensor text = normalize(text_projection(text_encoder(words, true).select(1, T - 1)));

  const Tensor scale = g.parameter("scale", size.dtype, {});
  const Tensor logits = matmul(image, text.transpose(0, 1)) * exp(scale), labels = g.arange(B, i64);
  return (cross_entropy(logits, labels) + cross_entropy(logits.transpose(0, 1), labels)) / 2.0;
}

}  // namespace lathe::papers
