#include <catch2/catch.hpp>
#include <random>

#include "ir/tensor/parser.h"
#include "ir/tensor/printer.h"
#include "passes/autodiff.h"
#include "passes/expand.h"
#include "passes/pipeline.h"
#include "tests/passes/support.h"
#include "tests/support/random_graph.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

/// Up to five passes in any order.
Pipeline random_pipeline(std::mt19937& random) {
  const Pipeline all = all_passes();
  Pipeline some;
  for (int i = 0; i < 5; ++i) some.push_back(all[random() % all.size()]);
  return some;
}

Graph with_gradients(const Graph& graph) {
  return differentiate(graph, {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
}

}  // namespace

TEST_CASE("random graphs and their gradients mean the same after any passes in any order", "[fuzz]") {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Graph forward = random_graph(seed, 12), both = with_gradients(forward);
    const Tensors arguments = random_arguments(forward, random_graph_dims, seed);
    for (const Graph& graph : {forward, both}) {
      INFO("seed " << seed << "\n" << text(graph));
      const Pipeline some = random_pipeline(random);
      std::string names;
      for (const Pass& pass : some) names += pass.name + " ";
      INFO(names);
      check_same_meaning(graph, run_pipeline(graph, some).graph, arguments, 1e-9);
      check_same_meaning(graph, run_pipeline(graph, default_pipeline()).graph, arguments, 1e-9);
    }
  }
}

TEST_CASE("gradients of random graphs are the same before and after expanding and simplifying the forward",
          "[fuzz]") {
  for (unsigned seed = 200; seed < 280; ++seed) {
    const Graph forward = random_graph(seed, 10);
    INFO("seed " << seed << "\n" << text(forward));
    const Tensors arguments = random_arguments(forward, random_graph_dims, seed);
    const Graph simpler = run_pipeline(forward, parse_pipeline("canonicalize,cse,constant-fold")).graph;
    check_same_meaning(with_gradients(forward), with_gradients(simpler), arguments, 1e-9);
  }
}

TEST_CASE("random graphs and their gradients print, parse and print the same", "[fuzz]") {
  for (unsigned seed = 300; seed < 340; ++seed) {
    const Graph graph = with_gradients(random_graph(seed, 12));
    const std::string printed = print(graph);
    CHECK(print(parse_graph(printed, "fuzz")) == printed);
  }
}
