#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "examples/papers/papers.h"

/// ResNet-50 (He et al. 2015) with the stride in the 3 x 3 convolution of a block: four stages of bottlenecks, each
/// of half the side and twice the channels of the stage before.
namespace lathe::papers {

namespace {

/// A convolution without bias and the normalization after it.
struct Normalized : nn::Layer<Normalized> {
  Normalized(const Module& parent, std::string_view name, const Dim& in, const Dim& out, std::int64_t size,
             std::int64_t stride = 1)
      : Layer(parent, name, "Normalized"),
        conv(*this, "conv", in, out, {.size = size, .stride = stride, .padding = size / 2, .bias = false}),
        norm(*this, "norm", out) {}
  Tensor forward(const Tensor& x) const { return norm(conv(x)); }
  nn::Conv2d conv;
  nn::BatchNorm norm;
};

/// [B, in, n, n] -> [B, 4 width, n / stride, n / stride].
struct Bottleneck : nn::Layer<Bottleneck> {
  Bottleneck(const Module& parent, std::string_view name, const Dim& in, const Dim& width, std::int64_t stride)
      : Layer(parent, name, "Bottleneck"),
        narrow(*this, "narrow", in, width, 1),
        middle(*this, "middle", width, width, 3, stride),
        wide(*this, "wide", width, width * 4, 1) {
    if (in != width * 4) skip.emplace(*this, "skip", in, width * 4, 1, stride);
  }
  Tensor forward(const Tensor& x) const {
    const Tensor y = wide(relu(middle(relu(narrow(x)))));
    return relu(y + (skip ? (*skip)(x) : x));
  }
  Normalized narrow, middle, wide;
  std::optional<Normalized> skip;  ///< where the shapes differ
};

}  // namespace

Tensor resnet(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, n(size.length);
  const Tensor images = g.input("images", size.dtype, {B, 3, n, n}), labels = g.input("labels", i64, {B});

  const Normalized first(root, "first", 3, size.width, 7, 2);
  Tensor x = max_pool2d(relu(first(images)), {.size = 3, .stride = 2, .padding = 1});
  constexpr std::array<std::int64_t, 4> blocks{3, 4, 6, 3};
  std::int64_t in = size.width;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    for (std::int64_t block = 0; block < std::min(blocks[stage], size.layers); ++block) {
      const std::int64_t width = size.width << stage;
      x = Bottleneck(root, fmt::format("stage{}.{}", stage, block), in, width, stage > 0 && block == 0 ? 2 : 1)(x);
      in = 4 * width;
    }
  return cross_entropy(nn::Linear(root, "classes", in, size.vocabulary)(x.mean({2, 3})), labels);
}

}  // namespace lathe::papers
