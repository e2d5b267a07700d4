#include "passes/compile/gather_choice.h"

#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "passes/machines/cpu_machine.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/rank_scaling.h"
#include "tests/shard/support.h"

/// Whether gathered parameters are saved for backward, depending on a memory budget.
namespace lathe::shard::test {

namespace {

Sharded by_parameters(const ir::Graph& step, SecondGather second) {
  return divided(step, "data=4", "B:data", {.parameters = "data", .second_gather = second});
}

/// Layers whose weights are as large as their activations, so that saving them shows.
ir::Graph step_of_layers() { return gpt_step(3, 0, 0, f32); }

DimBindings sizes_of(const ir::Graph& step) {
  DimBindings sizes = local_dims(by_parameters(step, SecondGather::always), {{"B", 16}, {"T", 8}});
  sizes.emplace("mesh_index@data", 0);
  return sizes;
}

std::int64_t bytes_of(const ir::Graph& step, SecondGather second) {
  return plan_memory(program_of(by_parameters(step, second).graph), sizes_of(step)).total_bytes();
}

GatherChoice choice_within(const ir::Graph& step, const MemoryBudget& budget) {
  return choose_gathers(step, Mesh::parse("data=4"), parse_splits("B:data"), {.parameters = "data"},
                        cpu_machine(unnamed_cpu()), {.memory = budget});
}

GatherChoice choice_within(const ir::Graph& step, std::int64_t bytes) {
  return choice_within(step, MemoryBudget{.bytes = bytes, .dims = sizes_of(step)});
}

}  // namespace

TEST_CASE("gather choice: parameters are kept if the budget allows, otherwise gathered again") {
  const ir::Graph step = step_of_layers();
  const std::int64_t kept = bytes_of(step, SecondGather::never), again = bytes_of(step, SecondGather::always);
  REQUIRE(again < kept);
  for (const std::int64_t budget : {again, kept - 1, kept, kept + 1}) {
    const GatherChoice choice = choice_within(step, budget);
    CAPTURE(again, kept, budget, choice.why);
    CHECK(choice.second_gather == (budget < kept ? SecondGather::always : SecondGather::never));
    CHECK_THAT(choice.why, Catch::Contains(std::to_string(kept)) && Catch::Contains(std::to_string(again)) &&
                               Catch::Contains(std::to_string(budget)) && !Catch::Contains("recomputed"));
  }
  CHECK_THAT(choice_within(step, again - 1).why, Catch::Contains("recomputed to fit the budget"));
}

TEST_CASE("gather choice: if nothing fits, the error reports the minimum bytes") {
  const ir::Graph step = step_of_layers();
  CHECK_THROWS_WITH(choice_within(step, 1000), Catch::Contains("does not fit a memory budget of 1000 B") &&
                                                   Catch::Contains("bytes are the least"));
  CHECK_THROWS_WITH(choice_within(step, MemoryBudget{.bytes = 1 << 30}), Catch::Contains("[memory_dims]"));
}

TEST_CASE("gather choice: a budget does not override an explicit choice, and without one nothing is chosen") {
  const LowerOptions within{.memory = MemoryBudget{.bytes = 1 << 30}};
  CHECK(budget_chooses_gathers({.parameters = "data"}, within));
  CHECK_FALSE(budget_chooses_gathers({.parameters = "data"}, {}));
  CHECK_FALSE(budget_chooses_gathers({.states = "data"}, within));
  for (const SecondGather said : {SecondGather::always, SecondGather::never})
    CHECK_FALSE(budget_chooses_gathers({.parameters = "data", .second_gather = said}, within));
  const ir::Graph step = step_of_layers();
  CHECK(by_parameters(step, SecondGather::decide).graph.size() ==
        by_parameters(step, SecondGather::always).graph.size());
}

}  // namespace lathe::shard::test
