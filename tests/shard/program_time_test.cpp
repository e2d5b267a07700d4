#include "passes/compile/program_time.h"

#include <catch2/catch.hpp>

#include "passes/compile/compilation.h"
#include "passes/machines/gpu_machine.h"
#include "passes/memory/memory_plan.h"
#include "tests/shard/support.h"

/// Predicted times of programs compiled for a GPU.
namespace lathe::shard::test {

namespace {

Program compiled(const ir::Graph& graph) {
  const Machine machine = gpu_machine(gpu_info("sm_90a"));
  return compile_graph(graph, machine).program;
}

/// 1024 operations without tensor cores, 192 bytes and half a message per second; other work is free.
StepRates slow_gpu() {
  StepRates rates = slow_network();
  rates.flops = 1e30;
  rates.plain_flops = 1024;
  return rates;
}

Program products_of_gpu() { return compiled(two_products()); }

}  // namespace

TEST_CASE("shard: predicted time of a program is its matmuls and its unhidden communication") {
  const StepTime time = program_time(products_of_gpu(), slow_gpu(), {});
  CHECK(time.products == Approx(2));
  CHECK(time.memory == 0);
  // In one bucket, whose 2 * 3 messages are shared.
  CHECK(time.collectives == Approx(2 * 3 * 0.5 + 2 * 192.0 / 192));
  CHECK(time.step() == Approx(2 + time.waiting));
  CHECK(time.waiting == Approx(time.collectives));
}

TEST_CASE("shard: a launch takes the maximum of compute and memory time plus its launch time") {
  const Program program = products_of_gpu();
  StepRates rates = slow_gpu();
  rates.launch_seconds = 3;
  const auto launches = static_cast<double>(program.launches.size());
  REQUIRE(launches >= 3);
  CHECK(program_time(program, rates, {}).memory == Approx(3 * launches));
  CHECK(program_time(program, rates, {}).collectives == Approx(5 + 2 * 3));  // with two reductions
  rates = slow_gpu();
  rates.memory_bandwidth = 64;
  double others = 0;
  for (const Launch& launch : program.launches) {
    const double bytes = static_cast<double>(launch.bytes.evaluate({})) / 64;
    const double products = launch.info.multiplier == Multiplier::none ? 0 : 1;
    const StepTime time = launch_time(program, launch, rates, {});
    CHECK(time.products == Approx(products));
    CHECK(time.products + time.memory == Approx(std::max(bytes, products)));
    others += time.memory;
  }
  CHECK(others > 0);
  CHECK(program_time(program, rates, {}).memory == Approx(others));
  rates.memory_bandwidth = 1e12;
  CHECK(program_time(program, rates, {}).memory < 1e-6);
}

TEST_CASE("shard: a prediction of a compiled program uses its times and its memory plan") {
  const ir::Graph step = gpt_step(1, 0.1, 0.5, f32);
  Scaling scaling{Mesh::parse("data=4"), parse_splits("B:data"), {}, "data", {{"B", 32}, {"T", 8}}, {}, 16};
  scaling.compile = [&](const ir::Graph& graph) { return compiled_step(compiled(graph), scaling.rates); };
  scaling.rates.plain_flops = 1e9;
  scaling.rates.memory_bandwidth = 1e12;
  const ScalingCurve curve = predict_scaling(step, scaling);
  REQUIRE(curve.points.size() == 5);
  const Sharded sharded = divided(step, "data=4", "B:data");
  const DimBindings dims = local_dims(sharded, scaling.dims);
  const Program program = compiled(sharded.graph);
  const MemoryPlan plan = plan_memory(program, dims);
  CHECK(curve.points[2].held == plan.total_bytes());
  CHECK(curve.points[2].time.step() == program_time(program, scaling.rates, dims).step());
  CHECK(curve.points[2].sent == bytes_sent(sharded, 0, dims));
  CHECK(curve.points[0].efficiency < 1);
  CHECK(curve.points[0].efficiency == Approx(curve.points[0].time.products / curve.points[0].time.step()));
  // f32 matmuls do not use tensor cores: a faster GPU computes them in less time.
  scaling.rates.plain_flops = 2e9;
  const ScalingCurve faster = predict_scaling(step, scaling);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    CHECK(faster.points[i].time.products == Approx(curve.points[i].time.products / 2));
    CHECK(faster.points[i].time.step() < curve.points[i].time.step());
  }
}

}  // namespace lathe::shard::test
