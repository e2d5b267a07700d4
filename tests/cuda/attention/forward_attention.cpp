#include "tests/cuda/attention/forward_attention.h"

#include <functional>
#include <utility>

#include <map>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"

namespace lathe::test {

namespace {

struct Attention {
  Graph g{"attention"};
  std::map<std::string, Tensor, std::less<>> inputs, masks;
  std::vector<Tensor> results;
};

void build(Attention& made, const PatternVariant& variant, std::int64_t depth, std::int64_t values,
           const DimBindings& known = {}) {
  const DType dtype = variant.types == Types::f16 ? f16 : bf16;
  Sizes sizes = sizes_of(variant);
  sizes.d = Dim{"d", depth}, sizes.e = Dim{"e", values};
  for (const auto& [name, size] : known)
    for (Dim* dim : {&sizes.N, &sizes.S, &sizes.T})
      if (dim->name() == name) *dim = Dim{name, size};
  const MakeInput input = [&](std::string_view name, std::optional<DType> given, const Shape& shape) {
    auto& inputs = given ? made.masks : made.inputs;
    const auto found = inputs.find(name);
    if (found != inputs.end()) return found->second;
    return inputs.emplace(std::string(name), made.g.input(name, given.value_or(dtype), shape)).first->second;
  };
  for (const LaidOut& one : lay_out(variant, sizes, input)) {
    const Tensor scores = variant.types == Types::f32_softmax ? one.scores.to(f32) : one.scores;
    Tensor weights = mask_scores(variant, sizes, made.g, input, one, scores).softmax(one.columns);
    if (variant.extra == Extra::dropout) weights = dropout(weights, made.g.random_state(), 0.25);
    made.results.push_back(one.apply(weights.to(dtype)));
  }
}

void return_results(Attention& made) {
  for (std::size_t i = 0; i < made.results.size(); ++i) made.g.output("y" + std::to_string(i), made.results[i]);
}

}  // namespace

ir::Graph forward_attention(const PatternVariant& variant, std::int64_t depth, std::int64_t values,
                            const DimBindings& known) {
  Attention made;
  build(made, variant, depth, values, known);
  return_results(made);
  return made.g.finish();
}

namespace {
/// Adds the gradients of a loss that is the weighted sum of `of(y)`.
ir::Graph with_gradients(Attention made, const std::function<Tensor(const Tensor&)>& of) {
  return_results(made);
  std::vector<Tensor> wrt;
  for (const auto& [name, tensor] : made.inputs) wrt.push_back(tensor);
  const Tensor y = of(made.results.at(0));
  const std::vector<Tensor> gradients = grad((y * made.g.input("weight", y.dtype(), y.shape())).sum(), wrt);
  std::size_t i = 0;
  for (const auto& [name, tensor] : made.inputs) made.g.output("grad." + name, gradients[i++]);
  return made.g.finish();
}
}  // namespace

ir::Graph attention_with_gradients(const PatternVariant& variant, std::int64_t depth, std::int64_t values) {
  Attention made;
  build(made, variant, depth, values);
  return with_gradients(std::move(made), [](const Tensor& y) { return y; });
}

ir::Graph attention_in_a_model(const PatternVariant& variant, std::int64_t depth, std::int64_t values,
                               const DimBindings& known) {
  Attention made;
  build(made, variant, depth, values, known);
  return with_gradients(std::move(made), [](const Tensor& y) { return y * y; });
}

}  // namespace lathe::test
