#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "passes/autodiff/autodiff.h"
#include "passes/transforms/expand.h"
#include "tests/passes/support.h"

/// Gradients of an attention with zero_masked, whose fully masked queries yield zeros.
using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

constexpr int rows = 4, columns = 5;

/// An attention with static sizes if `known`, otherwise with sizes bound at run time.
ir::Graph masked_attention(bool known) {
  const std::string S = known ? fmt::format("S={}", rows) : "S", T = known ? fmt::format("T={}", columns) : "T";
  return parse(fmt::format(
      R"(graph @g(input %q: f64[{0}, 2], input %k: f64[{1}, 2], input %v: f64[{1}, 3], input %mask: bool[{0}, {1}]) {{
  %1 = attention %q, %k, %v, %mask {{scale=0.5, zero_masked=true}}
  output "y" %1
}})",
      S, T));
}

/// Queries that see no key, one, two, and all. For a single key the sum of exponentials is exactly 1.
Tensors arguments_of(const ir::Graph& graph) {
  Tensors arguments = random_arguments(graph, {{"S", rows}, {"T", columns}}, 5);
  constexpr int seen[rows] = {0, 1, 2, columns};
  for (int i = 0; i < rows * columns; ++i)
    arguments.at("mask").set(i, (i % columns + 2) % columns < seen[i / columns]);
  return arguments;
}

}  // namespace

TEST_CASE("zero_masked: gradients match finite differences, for the op and for its expansion") {
  for (const bool known : {false, true}) {
    INFO("known " << known);
    const ir::Graph graph = masked_attention(known);
    for (const ir::Graph& forward : {graph, expand(graph)}) {
      const ir::Graph both = differentiate(forward, {.wrt = {"q", "k", "v"}});
      const Tensors arguments = arguments_of(both), results = interpret(both, arguments);
      check_gradients(forward, both, arguments, "y");
      check_same_meaning(both, expand(both), arguments);
      for (int d = 0; d < 2; ++d) CHECK(results.at("grad.q").get(d) == 0);
      for (int d = 0; d < 3; ++d) CHECK(results.at("y").get(d) == 0);
    }
  }
}
