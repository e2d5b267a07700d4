#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/explain/explain_memory.h"
#include "runtime/backend/backend.h"
#include "runtime/executable_program.h"
#include "runtime/target.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/least_budget.h"
#include "tests/support/graphs/recurrent_cases.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"

/// Loops within a memory budget: less memory, the same bits.
using namespace lathe;
using Catch::Matchers::Contains;

namespace {

/// Code for one target, because its memory differs between CPUs: some pack the operands of products.
CompileOptions within(std::optional<std::int64_t> bytes, const DimBindings& dims) {
  CompileOptions options{
      .target = Target::named("x86-64-v3"), .threads = 2, .cache = test::shared_kernels(), .poison = true};
  if (bytes) options.lower.memory = MemoryBudget{*bytes, dims};
  return options;
}

/// Returns random inputs and parameters, which are small, so that errors do not grow in long loops. All other states,
/// such as those of the optimizer, are zero.
Tensors arguments_of(const ir::Graph& graph, const DimBindings& dims) {
  Tensors found = test::random_arguments(graph, dims);
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op == &ir::ops::input) continue;
    HostTensor& value = found.at(node.name);
    const double factor = node.op == &ir::ops::parameter ? 0.1 : 0;
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, factor * value.get(i));
  }
  return found;
}

struct Ladder {
  std::int64_t most = 0, least = 0;
};

/// Runs with budgets from unlimited down to the minimum: the actual peak fits, never rises, and the results keep
/// their bits at the sizes of the budget and at others.
Ladder check_ladder(const ir::Graph& graph, const std::vector<DimBindings>& sizes, int rungs = 2) {
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
      const Tensors arguments = arguments_of(graph, dims);
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

/// Compares the program within the smallest budget with the interpreter.
void check_least(const ir::Graph& graph, const DimBindings& dims, double tolerance) {
  const std::int64_t bytes = test::least_budget(graph, within({}, {}), dims).value();
  Executable executable = compile(graph, within(bytes, dims));
  const Tensors arguments = arguments_of(graph, dims);
  test::check_close(test::run_with_states(executable, arguments), ir::interpret(graph, arguments, {.dims = dims}),
                    tolerance);
}

/// Returns the report of `lathe explain --memory-budget` within the smallest budget.
std::string explained(const ir::Graph& graph, const DimBindings& dims) {
  const std::int64_t bytes = test::least_budget(graph, within({}, {}), dims).value();
  return explain_memory(graph, machine_of(Target::named("x86-64-v3")), {.bytes = bytes, .dims = dims, .threads = 2});
}

constexpr std::int64_t batch = 8, d = 64;

/// A training step of tanh(h w + x).
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

ir::Graph stacked_gpt(int layers, DType dtype = f32) {
  models::GptConfig config = test::small_gpt(dtype, layers);
  config.stacked = true;
  return training_step(models::loss_graph(config).graph, "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1.0});
}

ir::Graph lstm(const Dim& iterations, std::int64_t layers, DType dtype = f32) {
  const Dim B{"B"};
  Graph g{"lstm"};
  const nn::Module root("Module", dtype);
  const nn::Lstm layer(root, "layer", 16, 32, {.layers = layers});
  const Tensor y = layer(g.input("x", dtype, {B, iterations, 16}));
  return training_step(g, (y * y).mean(), AdamW{.lr = 1e-3});
}

/// The gradients of a loop over rows, each of which is a loop over its elements.
ir::Graph nested(DType dtype) {
  Graph g{"nested"};
  const Tensor x = g.input("x", dtype, {6, 96, 4, 16}), w = g.parameter("w", dtype, {16, 16});
  const Tensor last = scan(g.zeros({4, 16}, dtype), x, [&](const Tensor& outer, const Tensor& rows) {
                        const Tensor inner = scan(outer, rows, [&](const Tensor& h, const Tensor& x_t) {
                                               const Tensor next = tanh(matmul(h, w) + x_t);
                                               return std::pair(next, next);
                                             }).first;
                        return std::pair(inner + outer, inner);
                      }).first;
  return training_step(g, (last * last).mean(), AdamW{.lr = 1e-3});
}

}  // namespace

TEST_CASE("loop budget: a recurrent step computes its products again") {
  constexpr std::int64_t iterations = 256, stack = iterations * batch * d * 4;
  const Ladder ladder = check_ladder(recurrent(iterations), {{}});
  // The product for the gradient of w needs all carries and gradients.
  CHECK(ladder.most - ladder.least >= stack * 9 / 10);
  CHECK(ladder.most - ladder.least <= stack);
  CHECK_THAT(explained(recurrent(iterations), {}), Contains("@step compiled_loop_budget.cpp:") &&
                                                       Contains(" of 256 iterations at a time; 512 KiB of saved"));
  CHECK_THAT(explain_memory(recurrent(iterations), machine_of(Target::named("x86-64-v3")), {ladder.most, {}}),
             Contains("the budget is met without it") && Contains("nothing is recomputed"));
  check_least(recurrent(32, f64), {}, 1e-9);
}

TEST_CASE("loop budget: late-bound numbers of iterations") {
  const Dim n{"n"};
  check_ladder(recurrent(Dim(8) * n), {{{"n", 16}}, {{"n", 1}}, {{"n", 0}}, {{"n", 5}}});
  check_ladder(recurrent(n), {{{"n", 128}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}});
  CHECK_THAT(explained(recurrent(Dim(8) * n), {{"n", 128}}), Contains(" 8 of 1024 iterations at a time"));
  CHECK_THAT(explained(recurrent(n), {{"n", 128}}), Contains(" 1 of 128 iterations at a time"));
  CHECK_THROWS_WITH(compile(recurrent(n), within(1 << 30, {})), Contains("n has none") && Contains("[memory_dims]"));
}

TEST_CASE("loop budget: layers as a loop keep the first value of each layer") {
  const std::vector<DimBindings> sizes{{{"B", 4}, {"T", 48}}, {{"B", 3}, {"T", 21}}};
  const Ladder ladder = check_ladder(stacked_gpt(8), sizes);
  CHECK(ladder.least < ladder.most * 6 / 10);
  CHECK_THAT(explained(stacked_gpt(8), sizes[0]), Contains("@layer ") && Contains("1 of 8 iterations at a time"));
  check_least(stacked_gpt(3, f64), {{"B", 2}, {"T", 9}}, 1e-8);
}

TEST_CASE("loop budget: LSTM steps of several layers, each in a loop") {
  const Dim n{"n"};
  for (const std::int64_t layers : {1, 2}) {
    const Ladder ladder = check_ladder(lstm(128, layers), {{{"B", 8}}, {{"B", 1}}});
    CHECK(ladder.least < ladder.most * 7 / 10);
    check_ladder(lstm(Dim(4) * n, layers), {{{"B", 4}, {"n", 16}}, {{"B", 2}, {"n", 3}}}, 1);
  }
  const std::string text = explained(lstm(128, 2), {{"B", 8}});
  CHECK_THAT(text,
             Contains("@lstm ") && Contains("@lstm.2 ") && Contains("loops that run again for their gradients"));
  check_least(lstm(12, 2, f64), {{"B", 2}}, 1e-9);
}

TEST_CASE("loop budget: loops in the body of a loop") {
  check_ladder(nested(f32), {{}});
  CHECK_THAT(explained(nested(f32), {}), Contains(" of 96 iterations at a time"));
  check_least(nested(f64), {}, 1e-9);
}

TEST_CASE("loop budget: loops that are left alone, with the reason") {
  Graph g{"all"};
  const Tensor x = g.input("x", f32, {64, batch, d}), w = g.input("w", f32, {d, d});
  const Tensor all = scan(g.zeros({batch, d}, f32), x, [&](const Tensor& h, const Tensor& x_t) {
                       const Tensor next = tanh(matmul(h, w) + x_t);
                       return std::pair(next, h);
                     }).second;
  const Tensor sums = scan(g.zeros({batch, d}, f32), all, [&](const Tensor& s, const Tensor& h) {
                        const Tensor next = s * 0.5 + h;
                        return std::pair(next, next);
                      }).second;
  g.output("sums", sums);
  g.output("all", all);
  const ir::Graph graph = g.finish();
  CHECK_THAT(explained(graph, {}), Contains("loops that do not run again:\n  @step compiled_loop_budget.cpp:") &&
                                       Contains(": its saved values are also results of the graph") &&
                                       Contains("nothing is recomputed"));
  check_ladder(graph, {{}}, 1);
}

TEST_CASE("loop budget: the error gives the reason for each loop that is left alone") {
  // A large value outside of the loops.
  Graph g{"large"};
  const Tensor large = g.input("large", f32, {512, 512});
  const Tensor w = g.input("w", f32, {8, 8});
  const Tensor last = scan(g.zeros({8}, f32), g.input("x", f32, {16, 8}), [&](const Tensor& h, const Tensor& x_t) {
                        const Tensor next = tanh(matmul(h.unsqueeze(0), w).squeeze(0) + x_t);
                        return std::pair(next, next);
                      }).first;
  g.output("w", grad((last * last).mean(), {w})[0]);
  g.output("large", matmul(softmax(large, -1), softmax(large, 0)));
  CHECK_THROWS_WITH(compile(g.finish(), within(1, {})), Contains(" bytes are the least") &&
                                                            Contains("LoopOptions::checkpoint_every") &&
                                                            Contains("@step compiled_loop_budget.cpp:") &&
                                                            Contains("does not run again: the program would not "
                                                                     "take less memory"));

  // A carry of many elements, and a number of each iteration.
  const ir::Graph small = test::parse(R"(graph @g(input %h: f32[512], input %x: f32[4, 512], input %d: f32[]) {
  body @step(state %h: f32[512], input %x: f32[512]) {
    %1 = mul %h, %x
    %2 = sum %1 {dims=[0]}
    output "sum" %2
    update %h <- %1
  }
  %1 = loop %h, %x {body=@step, trips=4, sequences=1, result=1}
  body @back(state %d: f32[], input %sum: f32[]) {
    %1 = mul %d, %sum
    update %d <- %1
  }
  %2 = loop %d, %1 {body=@back, trips=4, sequences=1, reverse=true}
  output "d" %2
})");
  CHECK_THROWS_WITH(compile(small, within(1, {})),
                    Contains("@step") && Contains("checkpoints would take as much memory as the values"));
  CHECK_THAT(explained(recurrent(256), {}), !Contains("does not run again"));
}

TEST_CASE("loop budget: all kinds of loops and recurrent layers keep their bits") {
  std::vector<test::LoopCase> cases = test::loop_cases();
  for (test::LoopCase& each : test::recurrent_cases()) cases.push_back(std::move(each));
  for (const test::LoopCase& each : cases) {
    CAPTURE(each.name);
    check_ladder(each.graph(f32, false), {{}}, 1);
  }
}
