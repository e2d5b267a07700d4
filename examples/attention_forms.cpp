// The four forms of attention: self, multi-head with a matrix for each head, causal, and cross.
//
//   example_attention_forms [GOLDENS_FOLDER]

#include <fmt/core.h>

#include "examples/check_goldens.h"
#include "frontend/initial_values.h"
#include "frontend/models/attentions.h"
#include "ir/tensor/explain/explain.h"

using namespace lathe;

namespace {

HostTensor random_input(const std::string& name, std::vector<std::int64_t> shape) {
  return initial_value(Init::uniform({.low = 0, .high = 1}), name, f32, shape, 7);
}

/// Checks that later words do not affect a causal row: the first two rows do not change when the last word does.
bool causal_looks_back_only(const ir::Graph& graph, std::span<const Initializer> initializers) {
  Executable forms = compile(graph);
  forms.parameters().set(initial_values(graph, initializers, 1));
  Tensors inputs;
  for (const char* name : {"Q", "K", "V"}) inputs.emplace(name, random_input(name, {3, 4}));
  for (const char* name : {"encoder_input", "decoder_input"}) inputs.emplace(name, random_input(name, {1, 3, 8}));
  HostTensor x = random_input("x", {3, 8});
  inputs.emplace("x", x);
  const HostTensor before = forms.run(inputs).at("causal");  // [1, n, d]
  for (std::int64_t i = 16; i < 24; ++i) x.set(i, 9);
  inputs.insert_or_assign("x", x);
  const HostTensor after = forms.run(inputs).at("causal");
  bool past_same = true, last_same = true;
  for (std::int64_t i = 0; i < 16; ++i) past_same = past_same && before.get(i) == after.get(i);
  for (std::int64_t i = 16; i < 24; ++i) last_same = last_same && before.get(i) == after.get(i);
  fmt::print("changing the last word: earlier rows of causal attention {}, its own row {}\n",
             past_same ? "stay" : "CHANGE", last_same ? "STAYS" : "changes");
  return past_same && !last_same;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    Graph g{"attention_forms"};
    models::attention_forms(g);
    fmt::print("{}\n", ir::explain(g.ir()));
    const auto initializers = g.initializers();
    const bool good = causal_looks_back_only(g.finish(), initializers);
    return (argc < 2 || examples::check_goldens(argv[1], {"attention_forms"})) && good;
  });
}
