#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/printer.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

using namespace lathe;
using namespace lathe::test;

namespace {

struct Case {
  Dim depth = 8;
  bool causal = false;
  std::int64_t window = 0;  ///< columns that a row sees; 0: all
  DType dtype = bf16;
};

ir::Graph attention(const Case& c) {
  Graph g{"attention"};
  const Dim S("S"), T("T");
  const auto input = [&](const char* name, const Dim& length) {
    return g.input(name, c.dtype, {2, length, c.depth});
  };
  const Tensor q = input("q", S), k = input("k", T), v = input("v", T);
  Tensor s = matmul(q, k.transpose(-2, -1));
  if (c.causal) s = s.masked_fill(~g.causal_mask(S, T), -1e9);
  if (c.window > 0) s = s.masked_fill(g.causal_mask(S, T, -c.window), -1e9);
  const Tensor y = matmul(s.softmax(-1), v);
  g.output("y", y);
  const auto gradients = grad(y, {q, k, v}, input("dy", S));
  for (std::size_t i = 0; i < 3; ++i) g.output("gradient_" + std::to_string(i), gradients[i]);
  return ir::run_pipeline(g.finish(), ir::default_pipeline()).graph;
}

std::string code(const Case& c, const CpuInfo& target) {
  std::string text;
  for (const kernel::Kernel& kernel :
       lower_cpu(attention(c), target, {.attention = AttentionFusion::required}).kernels)
    text += kernel::canonical_text(kernel);
  return text;
}

const CpuInfo with_pairs = cpu_with(128, {.dot_pairs = true});

}  // namespace

TEST_CASE("fused bf16 attention multiplies bf16 pairs on CPUs that support it") {
  using Catch::Matchers::Contains;
  CHECK_THAT(code({}, with_pairs), Contains("dot_pairs") && !Contains("= fma"));
  CHECK_THAT(code({}, cpu_with(128)), !Contains("dot_pairs") && Contains("= fma"));
  CHECK_THAT(code({.dtype = f32}, with_pairs), !Contains("dot_pairs"));
  CHECK_THAT(code({.dtype = f16}, with_pairs), !Contains("dot_pairs"));
}

TEST_CASE("odd or unknown depths do not use bf16 pairs") {
  using Catch::Matchers::Contains;
  CHECK_THAT(code({.depth = 5}, with_pairs), Contains("dot_pairs") && Contains("= fma"));  // the fma is for positions
  CHECK_THAT(code({.depth = Dim("d")}, with_pairs), !Contains("dot_pairs"));
}

TEST_CASE("attention with bf16 pairs matches the interpreter for odd sizes") {
  const LowerOptions required{.attention = AttentionFusion::required};
  for (const Case& c : {Case{}, Case{.depth = 5, .causal = true}, Case{.depth = 6, .causal = true, .window = 3}}) {
    const ir::Graph graph = attention(c);
    const auto lowered = [](const ir::Graph& g, const LowerOptions& options) {
      return lower_cpu(g, with_pairs, options);
    };
    const ProgramInterpreter fused(graph, lowered, required);
    for (const DimBindings& dims : {DimBindings{{"S", 5}, {"T", 7}}, DimBindings{{"S", 17}, {"T", 2}},
                                    DimBindings{{"S", 1}, {"T", 1}}, DimBindings{{"S", 35}, {"T", 35}}}) {
      INFO(to_string(dims) << " depth " << c.depth.to_string() << " window " << c.window);
      const Tensors arguments = random_arguments(graph, dims), found = fused.run(arguments),
                    expected = ir::interpret(graph, arguments, {.round = false});
      for (const auto& [name, value] : expected) {
        INFO(name);
        CHECK(error_of(found.at(name).cast(f64), value.cast(f64)) <= 1.6e-2);
      }
    }
  }
}

TEST_CASE("a second matmul of the scores reads plain bf16, not pairs") {
  Graph g{"scores"};
  const Tensor q = g.input("q", bf16, {2, 9, 8}), k = g.input("k", bf16, {2, 11, 8}),
               v = g.input("v", bf16, {2, 11, 8});
  const Tensor s = matmul(q, k.transpose(-2, -1));
  g.output("y", matmul(s.softmax(-1), v));
  g.output("z", matmul(s, v));
  const ir::Graph graph = ir::run_pipeline(g.finish(), ir::default_pipeline()).graph;
  const ProgramInterpreter program(
      graph, [](const ir::Graph& from, const LowerOptions& options) { return lower_cpu(from, with_pairs, options); },
      {.attention = AttentionFusion::required});
  const Tensors arguments = random_arguments(graph, {});
  for (const auto& [name, value] : ir::interpret(graph, arguments, {.round = false}))
    CHECK(error_of(program.run(arguments).at(name).cast(f64), value.cast(f64)) <= 1.6e-2);
}
