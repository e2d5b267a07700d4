#include "examples/papers/papers.h"

/// A generative adversarial network (Goodfellow et al. 2014, with the generator's loss of section 3). Both losses are
/// in one graph: each treats the parameters of the other network as constants.
namespace lathe::papers {

namespace {

struct Network : nn::Layer<Network> {
  Network(const Module& parent, std::string_view name, const Dim& in, const Dim& width, const Dim& out)
      : Layer(parent, name, "Network"),
        one(*this, "one", in, width),
        two(*this, "two", width, width),
        three(*this, "three", width, out) {}
  Tensor forward(const Tensor& x) const {
    const auto leaky = [](const Tensor& y) { return maximum(y, y * 0.2); };
    return three(leaky(two(leaky(one(x)))));
  }
  nn::Linear one, two, three;
};

/// While alive, the parameters of a network are constants.
nn::Substitution constant(const Graph& g, std::string_view network) {
  return nn::Substitution(g, [g, network](const nn::Parameter& p) {
    return p.name().starts_with(network) ? std::optional(p.in(g).detach()) : std::nullopt;
  });
}

}  // namespace

Tensor gan(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim N{"N", size.batch * size.length}, d{"d", size.width};
  const Network generator(root, "generator", d / 2, d * 4, d), critic(root, "critic", d, d * 4, 1);
  const Tensor real = g.input("real", size.dtype, {N, d}), noise = g.input("noise", size.dtype, {N, d / 2});
  const auto critic_loss = [&] {
    const nn::Substitution fixed = constant(g, "generator");
    return softplus(-critic(real)).mean() + softplus(critic(generator(noise))).mean();
  };
  const auto generator_loss = [&] {
    const nn::Substitution fixed = constant(g, "critic");
    return softplus(-critic(generator(noise))).mean();
  };
  return critic_loss() + generator_loss();
}

}  // namespace lathe::papers
