#include "examples/papers/papers.h"
#include "examples/papers/transformer.h"

/// Direct preference optimization (Rafailov et al. 2023, equation 7): the policy prefers the chosen answer to the
/// rejected one by more than a frozen reference model does.
namespace lathe::papers {

namespace {

struct LanguageModel : nn::Layer<LanguageModel> {
  LanguageModel(const Module& parent, std::string_view name, const Size& size)
      : Layer(parent, name, "LanguageModel"),
        tokens(*this, "tokens", size.vocabulary, size.width),
        positions(*this, "positions", size.length, size.width),
        blocks(*this, "blocks", size.layers, size.width, size.heads) {}
  /// Returns the log-probability of each text [B, T + 1].
  Tensor forward(const Tensor& texts) const {
    const Dim T = texts.size(1) - 1;
    const Tensor x = blocks(tokens(texts.slice(1, 0, T)) + positions.table().here(), true);
    const Tensor log_p = log_softmax(linear(x, tokens.table().here()), -1);
    return take_along(log_p, texts.slice(1, 1).unsqueeze(-1), -1).sum({1, 2});
  }
  nn::Embedding tokens, positions;
  Blocks blocks;
};

}  // namespace

Tensor direct_preference(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const LanguageModel policy(root, "policy", size), reference(root, "reference", size);
  const Dim B{"B", size.batch}, T{"T", size.length};
  const Tensor chosen = g.input("chosen", i64, {B, T + 1}), rejected = g.input("rejected", i64, {B, T + 1});
  const Tensor preferred = policy(chosen) - policy(rejected);
  const Tensor expected = (reference(chosen) - reference(rejected)).detach();
  const double beta = 0.1;
  return softplus((preferred - expected) * -beta).mean();  // -log(sigmoid(..))
}

}  // namespace lathe::papers
