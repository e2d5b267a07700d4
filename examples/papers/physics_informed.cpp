#include <cmath>
#include <numbers>

#include "examples/papers/papers.h"

/// A physics-informed network (Raissi et al. 2019, section 3.1): u(x, t) solves Burgers' equation
/// u_t + u u_x = (0.01 / pi) u_xx, with u(x, 0) = -sin(pi x). The loss has second derivatives of the network.
namespace lathe::papers {

Tensor physics_informed(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim N{"N", size.batch * size.length};
  std::vector<nn::Linear> layers;
  for (std::int64_t i = 0; i <= size.layers + 1; ++i)
    layers.emplace_back(root, std::to_string(i), i == 0 ? 2 : size.width, i == size.layers + 1 ? 1 : size.width);
  const auto u_of = [&](const Tensor& x, const Tensor& t) {
    Tensor y = concat({x, t}, 1);
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) y = tanh(layers[i](y));
    return layers.back()(y);
  };
  const Tensor x = g.input("x", size.dtype, {N, 1}), t = g.input("t", size.dtype, {N, 1});
  const Tensor u = u_of(x, t);
  const auto first = grad(u.sum(), {x, t});
  const Tensor u_xx = grad(first[0].sum(), {x})[0];
  const Tensor residual = first[1] + u * first[0] - u_xx * (0.01 / std::numbers::pi);
  const Tensor start = u_of(x, zeros_like(x)) + sin(x * std::numbers::pi);
  return square(residual).mean() + square(start).mean();
}

}  // namespace lathe::papers
