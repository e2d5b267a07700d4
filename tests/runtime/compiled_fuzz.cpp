#include <catch2/catch.hpp>
#include <random>

#include "ir/ops/list.h"
#include "passes/autodiff.h"
#include "passes/convert_dtype.h"
#include "tests/runtime/check_compiled.h"
#include "tests/support/memory_store.h"
#include "tests/support/random_graph.h"

/// Random graphs with their gradients and random updates of states, as machine code against the interpreter. Each is
/// compiled once and run with several sizes of its unknown dims.
using namespace lathe;
using namespace lathe::ir;

namespace {

const std::vector<DimBindings> several_sizes = {ir::test::random_graph_dims,
                                                {{"n", 1}, {"m", 1}},
                                                {{"n", 3}, {"m", 17}},
                                                {{"n", 0}, {"m", 2}},
                                                {{"n", 9}, {"m", 8}}};

/// Makes some inputs states, each updated by some value of its type.
Graph with_updates(Graph graph, unsigned seed) {
  std::mt19937 random(seed);
  for (const ValueId state : graph.arguments()) {
    if (graph[state].type.dtype != f64 || random() % 2) continue;
    std::vector<ValueId> fitting;
    for (const ValueId id : all_values(graph))
      if (graph[id].type.dtype == f64 && graph[id].type.shape == graph[state].type.shape && id != state)
        fitting.push_back(id);
    graph[state].op = &ops::state;
    if (!fitting.empty()) graph.updates.push_back({state, fitting[random() % fitting.size()]});
  }
  return graph;
}

Graph fuzz_graph(unsigned seed, int ops) {
  const Graph forward = ir::test::random_graph(seed, ops);
  const Graph both = differentiate(forward, {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
  return with_updates(both, seed);
}

void fuzz(unsigned first, unsigned count, int ops) {
  lathe::test::MemoryStore store;
  for (unsigned seed = first; seed < first + count; ++seed)
    lathe::test::check_compiled(fuzz_graph(seed, ops),
                                {.sizes = several_sizes, .tolerance = 1e-8, .seed = seed, .top = 0, .store = &store});
}

}  // namespace

TEST_CASE("random graphs as machine code", "[fuzz]") { fuzz(1000, 60, 12); }
TEST_CASE("many random graphs as machine code", "[.long]") { fuzz(5000, 1000, 14); }
