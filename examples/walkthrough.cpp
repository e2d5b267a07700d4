// Multi-head attention step by step: how each step changes the shape, and why. All text comes from the IR.
//
//   example_walkthrough [GOLDENS_FOLDER]

#include <fmt/core.h>

#include "examples/check_goldens.h"
#include "frontend/initial_values.h"
#include "frontend/models/attentions.h"
#include "ir/tensor/explain/explain.h"

using namespace lathe;

namespace {

/// Prints the attention weights between the words in the first head, for two sentences of four words, the last one
/// padding.
void print_weights(Graph& g) {
  g.output("weights", [&] {
    for (const ir::ValueId id : ir::all_values(g.ir()))
      if (g.ir()[id].name == "weights") return Tensor(ir::Value(g.builder(), id));
    throw InternalError("the walkthrough names no weights");
  }());
  const auto initializers = g.initializers();
  const ir::Graph graph = g.finish();
  Executable attention = compile(graph);
  attention.parameters().set(initial_values(graph, initializers, 1));
  const auto results = attention.run({{"token_ids", HostTensor::from_ints({2, 4}, {1, 2, 3, 0, 4, 5, 6, 0})}});
  fmt::print("\nThe attention weights of the first sentence, first head; the last word is padding:\n");
  const HostTensor& weights = results.at("weights");  // [nbatches, h, n_seq, n_seq]
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t column = 0; column < 4; ++column) fmt::print("  {:.3f}", weights.get(row * 4 + column));
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    Graph g{"attention_walkthrough"};
    models::attention_walkthrough(g);
    fmt::print("{}", ir::explain(g.ir()));
    print_weights(g);
    return argc < 2 || examples::check_goldens(argv[1], {"attention_walkthrough", "mask_edges"});
  });
}
