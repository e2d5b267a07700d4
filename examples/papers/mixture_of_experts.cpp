#include "examples/papers/papers.h"
#include "examples/papers/transformer.h"

/// A language model with mixtures of experts (Fedus et al. 2021; top 2 as in Mixtral), whose loss also balances the
/// experts' loads.
namespace lathe::papers {

namespace {

struct ExpertBlock : nn::Layer<ExpertBlock> {
  ExpertBlock(const Module& parent, std::string_view name, const Dim& d, const Dim& h)
      : Layer(parent, name, "ExpertBlock"),
        norm1(*this, "norm1", d),
        norm2(*this, "norm2", d),
        attention(*this, "attention", d, h),
        experts(*this, "experts", d, d * 2, {.count = 8, .chosen = 2}) {}
  Tensor forward(const Tensor& x, std::vector<nn::Routing>& routings) const {
    const Tensor y = x + attention(norm1(x), true);
    return y + experts(norm2(y), nn::Dispatch::automatic, &routings);
  }
  nn::RmsNorm norm1, norm2;
  Attention attention;
  nn::Experts experts;
};

}  // namespace

Tensor mixture_of_experts(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, T{"T", size.length}, d{"d", size.width}, h{"h", size.heads};
  const Tensor texts = g.input("texts", i64, {B, T + 1});
  const nn::Embedding tokens(root, "tokens", size.vocabulary, d), positions(root, "positions", T, d);
  std::vector<nn::Routing> routings;
  Tensor x = tokens(texts.slice(1, 0, T)) + positions.table().here();
  for (std::int64_t i = 0; i < size.layers; ++i) x = ExpertBlock(root, std::to_string(i), d, h)(x, routings);
  Tensor loss = cross_entropy(linear(rms_norm(x), tokens.table().here()), texts.slice(1, 1));
  for (const nn::Routing& routing : routings)
    loss = loss + nn::load_balancing_loss(routing) * 1e-2 + nn::router_z_loss(routing) * 1e-3;
  return loss;
}

}  // namespace lathe::papers
