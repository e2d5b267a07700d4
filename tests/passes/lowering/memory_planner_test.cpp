#include "passes/memory/memory_planner.h"

#include <catch2/catch.hpp>
#include <random>

#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

/// Plans for a sequence of sizes, for one program after another.
using namespace lathe;

namespace {

Program planned_step() {
  const models::LossGraph model = models::loss_graph(
      models::GptConfig{.vocab = Dim("vocab", 997), .d_model = Dim("d_model", 96), .h = Dim("h", 3), .layers = 3});
  const ir::Graph step = training_step(model.graph, "loss", AdamW{.lr = 1e-3});
  return lower_cpu(ir::run_pipeline(step, ir::default_pipeline()).graph, unnamed_cpu());
}

std::vector<std::int64_t> elements_of(const Program& program, const DimBindings& dims) {
  std::vector<std::int64_t> elements;
  for (const ProgramBuffer& buffer : program.buffers) elements.push_back(buffer.elements.evaluate(dims));
  return elements;
}

}  // namespace

TEST_CASE("memory planner: the first plan matches plan_memory, later plans are as good without a search") {
  const Program program = planned_step();
  constexpr int threads = 2;
  MemoryPlanner planner(program, threads);
  std::mt19937 random(7);
  int plans = 0;
  for (int i = 0; i < 60; ++i, ++plans) {
    const DimBindings dims{{"B", 1 + random() % 4}, {"T", 1 + random() % 300}};
    const MemoryPlan& plan = planner.plan(elements_of(program, dims));
    const MemoryPlan searched = plan_memory(program, dims, threads);
    verify_plan(plan);
    INFO("B=" << dims.at("B") << " T=" << dims.at("T"));
    REQUIRE(plan.blocks.size() == searched.blocks.size());
    CHECK(plan.lower_bound == searched.lower_bound);
    CHECK(plan.peak_launch == searched.peak_launch);
    CHECK(plan.argument_bytes == searched.argument_bytes);
    CHECK(static_cast<double>(plan.arena_bytes) <= 1.03 * static_cast<double>(plan.lower_bound));
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      CHECK((plan.blocks[b].buffer == searched.blocks[b].buffer && plan.blocks[b].bytes == searched.blocks[b].bytes));
      if (plans == 0) CHECK(plan.blocks[b].offset == searched.blocks[b].offset);
    }
  }
  INFO(planner.searches() << " searches");
  CHECK(planner.searches() <= plans / 4);
}

TEST_CASE("memory planner: handles blocks that become empty or non-empty") {
  const Program program = planned_step();
  MemoryPlanner planner(program);
  for (const std::int64_t length : {0, 33, 0, 1, 200, 0, 7}) {
    const DimBindings dims{{"B", 2}, {"T", length}};
    const MemoryPlan& plan = planner.plan(elements_of(program, dims));
    verify_plan(plan);
    CHECK(plan.arena_bytes >= plan.lower_bound);
  }
  std::vector<std::int64_t> huge(program.buffers.size(), INT64_MAX / 2);
  CHECK_THROWS_AS(planner.plan(huge), UserError);
}
