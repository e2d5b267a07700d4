#include "passes/compile/run_order.h"

#include <catch2/catch.hpp>

#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/shard/predict/rank_scaling.h"
#include "tests/shard/support.h"
#include "tests/support/tensors/distance.h"

/// The order in which a process runs its nodes, on which predicted times are based.
namespace lathe::shard::test {

namespace {

ir::Graph as_run(const ir::Graph& graph) {
  const Machine machine = cpu_machine(unnamed_cpu());
  return in_run_order(compile_graph(graph, machine));
}

/// A GPT with 12.6 MB of weights per layer: updates wait for later sums, not for the end of the step.
ir::Graph heavy_gpt() {
  models::GptConfig config = lathe::test::divisible_gpt(8, 0, f32);
  config.d_model = Dim("d_model", 512);
  return lathe::test::gpt_step(config, AdamW{}, {});
}

/// Returns the number of gathers of new values before the last scatter of gradients.
int early_gathers(const ir::Graph& graph) {
  int all = 0, early = 0;
  for (const ir::ValueId id : ir::all_values(graph)) {
    const std::string_view op = graph[id].op->name.value;
    if (op == "all_gather") ++all;
    if (op == "reduce_scatter") early = all;
  }
  return early;
}

}  // namespace

TEST_CASE("shard: a graph in execution order has the same results") {
  for (const ir::Graph& step : {gpt_step(1, 0.1, 0.5), llama_step(1)}) {
    const Tensors arguments = step_arguments(step, 4, 5);
    const Tensors expected = ir::interpret(step, arguments), found = ir::interpret(as_run(step), arguments);
    REQUIRE(found.size() == expected.size());
    for (const auto& [name, value] : expected) CHECK(ir::test::distance(value, found.at(name)) < 1e-10);
  }
}

TEST_CASE("shard: new shards are gathered while later gradients are computed, and predicted so") {
  Scaling scaling{Mesh::parse("data=4"), {{"B", "data"}}, {.states = "data"}, "data", {{"B", 32}, {"T", 64}}};
  const Sharded sharded = shard(heavy_gpt(), scaling.mesh, scaling.splits, scaling.parts);
  const ir::Graph run = as_run(sharded.graph);
  CHECK(early_gathers(sharded.graph) == 0);
  CHECK(early_gathers(run) > 20);
  // Compute and communication take about the same time: gathers at the end are waited for, earlier ones are not.
  scaling.rates.flops = 2e11;
  scaling.rates.bandwidth = 2e9;
  const DimBindings dims = local_dims(sharded, scaling.dims);
  const StepTime at_end = step_time(sharded.graph, scaling.rates, dims), time = step_time(run, scaling.rates, dims);
  CHECK(time.products == Approx(at_end.products));
  CHECK(time.collectives == Approx(at_end.collectives).epsilon(0.01));
  CHECK(time.waiting < 0.7 * at_end.waiting);
  scaling.order = as_run;
  const ScalingCurve curve = predict_scaling(heavy_gpt(), scaling);
  CHECK(curve.points[2].time.step() == time.step());
  CHECK(curve.points[0].efficiency == Approx(1));
}

}  // namespace lathe::shard::test
