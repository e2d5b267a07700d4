#include "passes/fusion/attention/attention_cost.h"

#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/printer.h"
#include "passes/explain/explain_attention.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

using namespace lathe;
using namespace lathe::test;

namespace {

struct Case {
  Dim rows = 64;
  std::int64_t depth = 64;
  bool causal = false, backward = true;
  std::int64_t batch = 4, heads = 12;
  DType dtype = f32;
  std::int64_t window = 0;     ///< causal only: columns that a row sees; 0: all
  bool by_difference = false;  ///< the window is written as a difference of positions
};

ir::Graph attention(const Case& c) {
  Graph g{"attention"};
  const Shape shape = {c.batch, c.heads, c.rows, Dim(c.depth)};
  const Tensor q = g.input("q", c.dtype, shape), k = g.input("k", c.dtype, shape), v = g.input("v", c.dtype, shape);
  Tensor s = matmul(q, k.transpose(-2, -1));
  if (c.causal) s = s.masked_fill(~g.causal_mask(c.rows, c.rows), -1e9);
  if (c.window > 0 && c.by_difference) {
    const Tensor position = g.arange(c.rows, i64);
    const Tensor back = position.view({c.rows, 1}) - position.view({1, c.rows});
    s = s.masked_fill(g.constant(static_cast<double>(c.window), i64) <= back, -1e9);
  } else if (c.window > 0) {
    s = s.masked_fill(g.causal_mask(c.rows, c.rows, -c.window), -1e9);
  }
  const Tensor y = matmul(s.softmax(-1), v);
  g.output("y", y);
  if (c.backward) {
    const auto gradients = grad((y * y).sum(), {q, k, v});
    for (std::size_t i = 0; i < 3; ++i) g.output("grad" + std::to_string(i), gradients[i]);
  }
  return ir::run_pipeline(g.finish(), ir::default_pipeline()).graph;
}

std::string code(const Program& program) {
  std::string text;
  for (const Launch& launch : program.launches)
    text += kernel::canonical_text(program.kernels[static_cast<std::size_t>(launch.kernel)]);
  return text;
}

/// Whether lowering chooses the fused code; otherwise it must be the plain code.
bool fuses(const Case& c, const std::optional<MemoryBudget>& memory = {}, const CpuInfo& target = unnamed_cpu()) {
  const ir::Graph graph = attention(c);
  const std::string chosen = code(lower_cpu(graph, target, {.memory = memory}));
  const bool fused =
      chosen == code(lower_cpu(graph, target, {.attention = AttentionFusion::required, .memory = memory}));
  const bool plain = chosen == code(lower_cpu(graph, target, {.attention = AttentionFusion::off, .memory = memory}));
  CHECK(fused != plain);
  return fused;
}

}  // namespace

TEST_CASE("attention is fused when the cost model estimates a speedup") {
  CHECK(fuses({.rows = 1024}));
  CHECK(fuses({.rows = 128, .depth = 64, .causal = true}));
  CHECK(fuses({.rows = 256, .depth = 32}));
  CHECK_FALSE(fuses({.rows = 128, .depth = 64}));
  CHECK_FALSE(fuses({.rows = 32, .depth = 128, .causal = true}));
  CHECK_FALSE(fuses({.rows = 512, .depth = 256}));
  CHECK(fuses({.rows = 64, .depth = 64, .backward = false}));
  CHECK(fuses({.rows = 16, .depth = 32, .backward = false}));
  CHECK_FALSE(fuses({.rows = 16, .depth = 256, .backward = false}));
}

TEST_CASE("attention is fused if a size is unknown or the scores exceed the depth limit") {
  CHECK(fuses({.rows = Dim{"S"}, .depth = 32}));
  CHECK(fuses({.rows = 2048, .depth = 256, .batch = 1, .heads = 1}));
  CHECK(fuses({.rows = 136, .depth = 32}));
  CHECK_FALSE(fuses({.rows = 128, .depth = 32}));
}

TEST_CASE("a sliding window counts only the columns that rows attend to") {
  const Case causal{.rows = 64, .depth = 256, .causal = true};
  CHECK_FALSE(fuses(causal));
  for (const bool by_difference : {false, true}) {
    Case c = causal;
    c.by_difference = by_difference;
    c.window = 4;
    CHECK(fuses(c));
    c.window = 60;
    CHECK_FALSE(fuses(c));
  }
}

TEST_CASE("bf16 attention is fused by size, with and without bf16 pairs") {
  for (const bool pairs : {true, false}) {
    const CpuInfo target = cpu_with(512, {.dot_pairs = pairs});
    CHECK(fuses({.rows = 128, .causal = true, .dtype = bf16}, {}, target));
    CHECK(fuses({.rows = 1024, .dtype = bf16}, {}, target));
    CHECK_FALSE(fuses({.rows = 128, .dtype = bf16}, {}, target));
  }
}

TEST_CASE("f32 attention on a CPU with tiles is fused if its matmuls use bf16 terms") {
  const CpuInfo tiles = cpu_with(512, {.tiles = true});
  for (const Case& c : {Case{.rows = 256, .depth = 128}, Case{.rows = 160}, Case{.rows = 512, .depth = 256}}) {
    CHECK(fuses(c, {}, tiles));
    CHECK_FALSE(fuses(c));
  }
  CHECK_FALSE(fuses({.rows = 128}, {}, tiles));
  CHECK_FALSE(fuses({.rows = 32, .depth = 128, .causal = true}, {}, tiles));
  const Case short_causal{.rows = 64, .depth = 128, .causal = true};
  CHECK(fuses(short_causal, {}, tiles));
  CHECK_FALSE(fuses(short_causal));
}

TEST_CASE("bf16 attention on a CPU with tiles is fused by its estimated cost") {
  const CpuInfo tiles = cpu_with(512, {.tiles = true});
  CHECK(fuses({.rows = 256, .causal = true, .dtype = bf16}, {}, tiles));
  CHECK(fuses({.rows = 512, .dtype = bf16}, {}, tiles));
  CHECK_FALSE(fuses({.rows = 64, .causal = true, .dtype = bf16}, {}, tiles));
  CHECK_FALSE(fuses({.rows = 128, .dtype = bf16}, {}, tiles));
  CHECK(fuses({.rows = 512, .depth = 128, .dtype = bf16}, {}, tiles));
  const Case few{.rows = 16, .depth = 32, .backward = false, .dtype = bf16};
  CHECK_FALSE(fuses(few, {}, tiles));
  CHECK(fuses(few));
}

TEST_CASE("a memory budget does not change which attention ops are fused") {
  const MemoryBudget plenty{.bytes = std::int64_t{1} << 40};
  CHECK_FALSE(fuses({.rows = 128}, plenty));
  CHECK(fuses({.rows = 1024}, plenty));
  const ir::Graph graph = attention({.rows = 128});
  const Program free = lower_cpu(graph, unnamed_cpu()), bound = lower_cpu(graph, unnamed_cpu(), {.memory = plenty});
  CHECK(code(free) == code(bound));
}

TEST_CASE("GPU targets ignore the CPU cost model") {
  const ir::Graph graph = attention({.rows = 128});
  CHECK(code(lower_gpu(graph, {})) == code(lower_gpu(graph, {.attention = AttentionFusion::required})));
}

TEST_CASE("explain reports that unfused code is faster, by how much, and at which line") {
  using Catch::Matchers::Contains;
  const auto told = [](const Case& c) {
    const Machine machine = cpu_machine(unnamed_cpu());
    return explain_attention(lower_graph(attention(c), machine), machine.info);
  };
  const std::string text = told({.rows = 128});
  CHECK_THAT(text, Contains(": not fused"));
  CHECK_THAT(text, Contains("plain is faster: estimated at ") && Contains(" multiply-adds a score, fused at ") &&
                       Contains("contract at") && Contains("attention_cost_test.cpp:"));
  CHECK_THAT(told({.rows = 1024}), !Contains("plain is faster"));
}

TEST_CASE("unfused attention matches the interpreter") {
  for (const bool causal : {false, true}) {
    const Case c{.rows = 16, .depth = 32, .causal = causal, .batch = 2, .heads = 2, .dtype = f64};
    CHECK_FALSE(fuses(c));
    const ir::Graph graph = attention(c);
    const Tensors arguments = random_arguments(graph, {});
    const Tensors expected = ir::interpret(graph, arguments);
    Executable executable = compile(graph, {.threads = 2});
    const Tensors found = run_with_states(executable, arguments);
    for (const auto& [name, value] : expected) CHECK(error_of(found.at(name), value) <= 1e-11);
  }
}
