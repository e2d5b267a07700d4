#include <algorithm>
#include <cmath>

#include "examples/papers/papers.h"

/// Muon (Jordan et al. 2024) as an optimizer of a user, and an MLP that it trains. The library has one with more
/// options, which computes matrices of equal sizes together: lathe::Muon.
namespace lathe::papers {

Optimizer muon(Schedule rate) {
  return Optimizer("muon", std::move(rate), [](ParameterUpdate& update) {
    const Tensor momentum = update.state("momentum"), g = update.gradient();
    const Tensor next = momentum * 0.95 + g * 0.05;
    update.set_state(momentum, next);
    Tensor x = g * 0.05 + next * 0.95;  // Nesterov
    const bool is_tall = x.size(0).number() > x.size(1).number();
    if (is_tall) x = x.transpose(0, 1);
    x = x / maximum(norm(x), 1e-7);
    for (int i = 0; i < 5; ++i) {  // Newton-Schulz: the singular values approach 1
      const Tensor gram = matmul(x, x.transpose(0, 1));
      x = x * 3.4445 + matmul(gram * -4.775 + matmul(gram, gram) * 2.0315, x);
    }
    if (is_tall) x = x.transpose(0, 1);
    const double rows = static_cast<double>(x.size(0).number()), columns = static_cast<double>(x.size(1).number());
    const Tensor scaled = update.rounded(update.exact_rate() * std::sqrt(std::max(1.0, rows / columns)));
    update.set_parameter(update.parameter() * update.rounded(1.0 - update.exact_rate() * 0.1) - x * scaled);
  });
}

Tensor muon_mlp(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim N{"N", size.batch * size.length}, d{"d", size.width};
  Tensor x = g.input("x", size.dtype, {N, d});
  for (std::int64_t i = 0; i < size.layers; ++i) {
    const nn::Linear up(root, std::to_string(i) + ".up", d, d * 4, {.bias = false}),
        down(root, std::to_string(i) + ".down", d * 4, d, {.bias = false});
    x = x + down(square(relu(up(x))));
  }
  return mse_loss(x, g.input("target", size.dtype, {N, d}));
}

}  // namespace lathe::papers
