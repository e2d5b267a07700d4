#include <algorithm>
#include <catch2/catch.hpp>

#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "tests/attention/attention_check.h"

/// Values per row of an attention that are outputs for each of its columns.
using namespace lathe;

namespace {

ir::Graph expanded_sums(std::optional<DType> dtype) {
  const DType computed = dtype.value_or(f32);
  Graph g{"kept_columns"};
  const Dim N{"N"}, S{"S"}, T{"T"};
  const Tensor q = g.input("q", computed, {N, 2, S, 4}), k = g.input("k", computed, {N, 2, T, 4});
  const Tensor x = g.input("x", computed, {N, 2, S, T});
  const Tensor e = exp(matmul(q, k.transpose(-2, -1)));
  const Tensor total = e.sum(-1, true);
  g.output("weights", matmul(e, k));
  g.output("totals", total.expand({N, 2, S, T}));
  g.output("shares", (x / total).sum(-1, true).expand({N, 2, S, T}));
  return g.finish();
}

}  // namespace

TEST_CASE("attention can expand a row sum to all of its columns") {
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))}) {
    const Lowered lowered = compile_graph(expanded_sums({}), machine);
    CHECK(std::ranges::any_of(lowered.program.launches,
                              [](const Launch& launch) { return launch.info.kind == RegionKind::attention; }));
  }
  test::check_attention(expanded_sums, {.sizes = {{{"N", 2}, {"S", 5}, {"T", 3}}, {{"N", 1}, {"S", 40}, {"T", 70}}}});
}
