#include "examples/papers/papers.h"

/// A U-Net that predicts the noise of an image (Ho et al. 2020): two levels down and up, with skips, and the time
/// added to the channels of each block.
namespace lathe::papers {

namespace {

struct Residual : nn::Layer<Residual> {
  Residual(const Module& parent, std::string_view name, const Dim& in, const Dim& out, const Dim& time_width)
      : Layer(parent, name, "Residual"),
        norm1(*this, "norm1", in, {.groups = 4}),
        norm2(*this, "norm2", out, {.groups = 4}),
        conv1(*this, "conv1", in, out, {.size = 3, .padding = 1}),
        conv2(*this, "conv2", out, out, {.size = 3, .padding = 1}),
        skip(*this, "skip", in, out, {.size = 1}),
        time(*this, "time", time_width, out) {}
  Tensor forward(const Tensor& x, const Tensor& t) const {
    const Tensor y = conv1(silu(norm1(x))) + time(t).unsqueeze(-1).unsqueeze(-1);
    return conv2(silu(norm2(y))) + skip(x);
  }
  nn::GroupNorm norm1, norm2;
  nn::Conv2d conv1, conv2, skip;
  nn::Linear time;
};

Tensor doubled(const Tensor& x) { return x.repeat_interleave(2, 2).repeat_interleave(2, 3); }

}  // namespace

Tensor u_net(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, n(size.length), c(size.width);
  const Tensor noisy = g.input("noisy", size.dtype, {B, 3, n, n}), noise = g.input("noise", size.dtype, {B, 3, n, n});
  const Tensor t = g.input("t", size.dtype, {B, 1});

  const nn::Linear time(root, "time", 1, c);
  const nn::Conv2d first(root, "first", 3, c, {.size = 3, .padding = 1}),
      down1(root, "down1", c, c, {.size = 3, .stride = 2, .padding = 1}),
      down2(root, "down2", c * 2, c * 2, {.size = 3, .stride = 2, .padding = 1}),
      last(root, "last", c, 3, {.size = 3, .padding = 1});
  const Residual one(root, "one", c, c, c), two(root, "two", c, c * 2, c), middle(root, "middle", c * 2, c * 2, c),
      up2(root, "up2", c * 4, c, c), up1(root, "up1", c * 2, c, c);

  const Tensor e = silu(time(t));
  const Tensor a = one(first(noisy), e);     // [B, c, n, n]
  const Tensor b = two(down1(a), e);         // [B, 2c, n/2, n/2]
  const Tensor inner = middle(down2(b), e);  // [B, 2c, n/4, n/4]
  const Tensor up = up2(concat({doubled(inner), b}, 1), e);
  return mse_loss(last(silu(up1(concat({doubled(up), a}, 1), e))), noise);
}

}  // namespace lathe::papers
