#include <cmath>

#include "examples/papers/papers.h"
#include "examples/papers/transformer.h"

/// A diffusion Transformer (Peebles and Xie 2022, figure 3): patches of a noisy image; the time and the class give
/// each block's shifts, scales and gates (adaLN-Zero). The loss is that of the predicted noise.
namespace lathe::papers {

namespace {

Tensor modulate(const Tensor& x, const Tensor& shift, const Tensor& scale) {
  return layer_norm(x, 1e-6) * (scale + 1.0) + shift;
}

/// [B] -> [B, d]: cosines and sines of frequencies from 1 down to 1 / 10000.
Tensor time_embedding(const Tensor& t, const Dim& d) {
  const Dim half = d / 2;
  const Tensor at = t.graph().arange(half, t.dtype()) * (-std::log(10000.0) / static_cast<double>(half.number()));
  const Tensor angles = t.unsqueeze(1) * exp(at);
  return concat({cos(angles), sin(angles)}, -1);
}

struct DitBlock : nn::Layer<DitBlock> {
  DitBlock(const Module& parent, std::string_view name, const Dim& d, const Dim& h)
      : Layer(parent, name, "DitBlock"),
        attention(*this, "attention", d, h),
        mlp(*this, "mlp", d, d * 4, {.activation = nn::Activation::gelu_tanh}),
        condition(*this, "condition", d, d * 6) {}
  Tensor forward(Tensor x, const Tensor& c) const {
    const auto m = condition(c).unsqueeze(1).chunk(6, -1);
    x = x + m[2] * attention(modulate(x, m[0], m[1]), false);
    return x + m[5] * mlp(modulate(x, m[3], m[4]));
  }
  Attention attention;
  nn::FeedForward mlp;
  nn::Linear condition;
};

}  // namespace

Tensor diffusion_transformer(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, d{"d", size.width}, h{"h", size.heads}, n(size.length / 2), channels(4);
  const Shape image{B, channels, n * 2, n * 2};
  const Tensor noisy = g.input("noisy", size.dtype, image), noise = g.input("noise", size.dtype, image);
  const Tensor t = g.input("t", size.dtype, {B}), label = g.input("label", i64, {B});

  const nn::Linear patches(root, "patches", channels * 4, d), final_condition(root, "final_condition", d, d * 2),
      final_layer(root, "final_layer", d, channels * 4);
  const nn::FeedForward time(root, "time", d, d, {.activation = nn::Activation::silu});
  const nn::Embedding classes(root, "classes", size.vocabulary, d);

  const Tensor pieces = noisy.view({B, channels, n, 2, n, 2}).permute({0, 2, 4, 1, 3, 5});
  Tensor x = patches(pieces.reshape({B, n * n, channels * 4})) + nn::sinusoidal_positions(g, n * n, d, size.dtype);
  const Tensor c = silu(time(time_embedding(t, d)) + classes(label));
  for (std::int64_t i = 0; i < size.layers; ++i) x = DitBlock(root, std::to_string(i), d, h)(x, c);

  const auto m = final_condition(c).unsqueeze(1).chunk(2, -1);
  const Tensor y = final_layer(modulate(x, m[0], m[1])).view({B, n, n, channels, 2, 2});
  return mse_loss(y.permute({0, 3, 1, 4, 2, 5}).reshape(image), noise);
}

}  // namespace lathe::papers
