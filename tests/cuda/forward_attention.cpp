#include "tests/cuda/forward_attention.h"

#include <map>

#include "frontend/ops.h"

namespace lathe::test {

ir::Graph forward_attention(const Spelling& spelling, std::int64_t depth, std::int64_t values) {
  const DType dtype = spelling.types == Types::f16 ? f16 : bf16;
  Sizes sizes = sizes_of(spelling);
  sizes.d = Dim{"d", depth}, sizes.e = Dim{"e", values};
  Graph g{"forward"};
  std::map<std::string, Tensor, std::less<>> inputs;
  const MakeInput input = [&](std::string_view name, std::optional<DType> given, const Shape& shape) {
    const auto known = inputs.find(name);
    if (known != inputs.end()) return known->second;
    return inputs.emplace(std::string(name), g.input(name, given.value_or(dtype), shape)).first->second;
  };
  const std::vector<LaidOut> parts = lay_out(spelling, sizes, input);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LaidOut& one = parts[i];
    const Tensor scores = spelling.types == Types::f32_softmax ? one.scores.to(f32) : one.scores;
    Tensor weights = mask_scores(spelling, sizes, g, input, one, scores).softmax(one.columns);
    if (spelling.extra == Extra::dropout) weights = dropout(weights, g.random_state(), 0.25);
    g.output("y" + std::to_string(i), one.apply(weights.to(dtype)));
  }
  return g.finish();
}

}  // namespace lathe::test
