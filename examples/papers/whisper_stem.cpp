#include "examples/papers/papers.h"

/// The layers of Whisper (Radford et al. 2022) below its encoder: two convolutions over 80 bands of a spectrogram, of
/// which the second halves the number of frames.
namespace lathe::papers {

Tensor whisper_stem(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, frames(size.length), d(size.width);
  const Tensor sound = g.input("sound", size.dtype, {B, 80, frames});
  const Tensor wanted = g.input("wanted", size.dtype, {B, size.length / 2, d});

  const nn::Conv1d conv1(root, "conv1", 80, d, {.size = 3, .padding = 1}),
      conv2(root, "conv2", d, d, {.size = 3, .stride = 2, .padding = 1});
  return mse_loss(gelu(conv2(gelu(conv1(sound)))).transpose(1, 2), wanted);
}

}  // namespace lathe::papers
