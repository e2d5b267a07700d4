#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_memory.h"
#include "passes/machines/cpu_machine.h"
#include "runtime/executable_program.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/recurrent_cases.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/least_budget.h"

/// Loops within a memory budget: less memory, the same bits.
using namespace lathe;
using Catch::Matchers::Contains;

namespace {

CompileOptions within(std::optional<std::int64_t> bytes, const DimBindings& dims) {
  CompileOptions options{.threads = 2, .cache = test::shared_kernels(), .poison = true};
  if (bytes) options.lower.memory = MemoryBudget{*bytes, dims};
  return options;
}

struct Ladder {
  std::int64_t most = 0, least = 0;
};

/// Runs with budgets from unlimited down to the minimum: the actual peak fits, never rises, and the results keep
/// their bits at the sizes of the budget and at others.
Ladder check_ladder(const ir::Graph& graph, const std::vector<DimBindings>& sizes, int rungs = 3) {
  Executable free = compile(graph, within({}, sizes[0]));
  const Ladder ladder{memory_plan_of(free, sizes[0]).total_bytes(),
                      test::least_budget(graph, within({}, {}), sizes[0]).value()};
  INFO("from " << ladder.most << " to " << ladder.least);
  std::int64_t before = ladder.most;
  for (int rung = 0; rung <= rungs; ++rung) {
    const std::int64_t budget = ladder.most - (ladder.most - ladder.least) * rung / rungs;
    Executable executable = compile(graph, within(budget, sizes[0]));
    const std::int64_t peak = memory_plan_of(executable, sizes[0]).total_bytes();
    INFO("budget " << budget);
    CHECK(peak <= budget);
    CHECK(peak <= before);
    before = peak;
    for (const DimBindings& dims : sizes) {
      const Tensors arguments = test::random_arguments(graph, dims);
      const Tensors expected = test::run_with_states(free, arguments),
                    found = test::run_with_states(executable, arguments);
      for (const auto& [name, value] : found) {
        INFO(name);
        CHECK(value.same_bits(expected.at(name)));
      }
    }
  }
  CHECK(before == ladder.least);
  CHECK_THROWS_WITH(compile(graph, within(ladder.least - 1, sizes[0])), Contains("memory_budget"));
  return ladder;
}

std::string explained(const ir::Graph& graph, std::int64_t bytes, const DimBindings& dims) {
  return explain_memory(graph, cpu_machine(unnamed_cpu()), MemoryBudget{bytes, dims});
}

constexpr std::int64_t batch = 8, d = 64;

/// The gradients of tanh(h w + x) over some iterations, and of x.
ir::Graph recurrent(const Dim& iterations, DType dtype = f32) {
  Graph g{"recurrent"};
  const Tensor x = g.input("x", dtype, {iterations, batch, d}), w = g.parameter("w", dtype, {d, d});
  const auto step = [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(h, w) + x_t);
    return std::pair(next, next);
  };
  const Tensor last = scan(g.zeros({batch, d}, dtype), x, step).first;
  return training_step(g, (last * last).mean(), AdamW{.lr = 1e-3});
}

}  // namespace

TEST_CASE("loop budget: a recurrent step saves what its products need") {
  constexpr std::int64_t iterations = 256, stack = iterations * batch * d * 4;
  const Ladder ladder = check_ladder(recurrent(iterations), {{}});
  // Of the carries, the products and the gradients, the products are computed again.
  CHECK(ladder.most - ladder.least >= stack * 9 / 10);
  INFO(explained(recurrent(iterations), ladder.least * 2, {}));
  CHECK(false);
}
