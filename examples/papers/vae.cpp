#include "examples/papers/papers.h"

/// A variational autoencoder (Kingma and Welling 2014, appendix C): the encoder gives the mean and the variance of a
/// normal distribution, the decoder the probability of each pixel. The noise is an input; models draw it with
/// Graph::random_normal.
namespace lathe::papers {

Tensor vae(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim N{"N", size.batch * size.length}, d{"d", size.width}, latent = d / 4;
  const Tensor x = g.input("x", size.dtype, {N, d * 4}), noise = g.input("noise", size.dtype, {N, latent});

  const nn::Linear hidden(root, "hidden", d * 4, d), mean_layer(root, "mean", d, latent),
      log_variance_layer(root, "log_variance", d, latent), decoder(root, "decoder", latent, d),
      pixels(root, "pixels", d, d * 4);

  const Tensor h = tanh(hidden(x)), mean = mean_layer(h), log_variance = log_variance_layer(h);
  const Tensor z = mean + noise * exp(log_variance * 0.5);
  const Tensor targets = sigmoid(x);  // pixels in (0, 1)
  const Tensor logits = pixels(tanh(decoder(z)));
  const Tensor reconstruction = binary_cross_entropy_with_logits(logits, targets, {}, Reduction::sum);
  const Tensor divergence = (square(mean) + exp(log_variance) - log_variance - 1.0).sum() * 0.5;
  return (reconstruction + divergence) / static_cast<double>(N.number());
}

}  // namespace lathe::papers
