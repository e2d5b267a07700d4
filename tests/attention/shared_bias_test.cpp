#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "tests/attention/attention_check.h"
#include "tests/attention/attention_search.h"
#include "tests/attention/variants/variant.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

using namespace lathe;
using namespace lathe::test;

namespace {

constexpr std::int64_t batches = 5, heads = 2, length = 997;

/// Attention with a bias by distance, from a learned table [8, h], with all gradients.
ir::Graph by_distance(std::optional<DType> dtype) {
  Graph g{"distance"};
  const Dim N{"N"}, S{"S"}, h{"h", heads}, d{"d", 4};
  const DType type = dtype.value_or(f32);
  const Tensor q = g.input("q", type, {N, h, S, d}), k = g.input("k", type, {N, h, S, d}),
               v = g.input("v", type, {N, h, S, d}), table = g.input("table", type, {8, h});
  const Tensor apart = abs(g.arange(S, i64).unsqueeze(1) - g.arange(S, i64).unsqueeze(0));  // [S, S]
  const Tensor bias = gather(table, minimum(apart, g.constant(7, i64)));                    // [S, S, h]
  const Tensor s = matmul(q, k.transpose(-2, -1)) + bias.permute({2, 0, 1});
  const Tensor y = matmul(s.softmax(-1), v);
  g.output("y", y);
  const std::vector<Tensor> wrt = {q, k, v, table};
  const auto gradients = grad((y * g.input("weight", type, y.shape())).sum(), wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

Program gpu_program(const ir::Graph& graph) {
  return lower_gpu(ir::run_pipeline(graph, ir::default_pipeline()).graph, {.attention = AttentionFusion::required});
}

/// Checks that no temporary, on a CPU or a GPU, is larger than one matrix of rows by columns per head.
void check_no_batches_of_squares(const ir::Graph& graph, std::int64_t of_heads = heads) {
  CHECK(unfused(graph) == "");
  const DimBindings dims = {{"N", batches}, {"S", length}, {"T", length}};
  CHECK(square_temporaries(graph, dims, of_heads * length * length + 1) == "");
  CHECK(square_temporaries(gpu_program(graph), dims, of_heads * length * length + 1) == "");
}

}  // namespace

TEST_CASE("the gradient of a bias that batches share is accumulated at the size of the bias") {
  for (const Layout layout : {Layout::heads, Layout::split, Layout::keys_first, Layout::heads_last, Layout::batched,
                              Layout::batched_viewed, Layout::length_first}) {
    INFO(PatternVariant{.layout = layout}.name());
    check_no_batches_of_squares(build({.layout = layout, .mask = Mask::bias_shared}));
    check_no_batches_of_squares(build({.layout = layout, .mask = Mask::bias_then_mask}));
  }
  check_no_batches_of_squares(build({.layout = Layout::grouped_expand, .mask = Mask::bias_shared}), 4);
  check_no_batches_of_squares(build({.layout = Layout::one_key_head, .mask = Mask::bias_then_mask}));
  check_no_batches_of_squares(by_distance({}));
}

TEST_CASE("a shared bias and its gradient match the interpreter") {
  KernelStore store;
  const std::vector<DimBindings> sizes = {{{"N", 3}, {"S", 5}, {"T", 7}}, {{"N", 2}, {"S", 70}, {"T", 3}}};
  check_attention(by_distance, {.sizes = sizes, .store = &store});
  for (const PatternVariant& s :
       {PatternVariant{.layout = Layout::heads, .mask = Mask::bias_shared},
        PatternVariant{.layout = Layout::one_key_head, .mask = Mask::bias_then_mask},
        PatternVariant{.layout = Layout::keys_first, .mask = Mask::bias_shared, .extra = Extra::cross}})
    check_attention([&](std::optional<DType> dtype) { return build(s, dtype); }, {.sizes = sizes, .store = &store});
}

TEST_CASE("the gradient of a bias with an empty batch is stored as zeros") {
  const ir::Graph late = build({.mask = Mask::bias_shared});
  const DimBindings dims = {{"N", 0}, {"S", 5}};
  const Tensors arguments = random_arguments(late, dims), expected = ir::interpret(late, arguments);
  const ProgramInterpreter program(late, cpu_with(256)), known(ir::with_sizes(late, {{"N", 3}}), cpu_with(256));
  const Tensors found = program.run(arguments);
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(error_of(found.at(name), value) == 0);
  }
  CHECK(program.program().launches.size() == known.program().launches.size() + 1);
}

TEST_CASE("16-bit sums on CPUs and non-sum reductions over outer dims are not accumulated in attention") {
  const auto largest = [](const ir::Graph& graph) {
    return square_temporaries(graph, {{"N", batches}, {"S", length}}, heads * length * length + 1);
  };
  CHECK(largest(build({.mask = Mask::bias_shared}, bf16)) != "");
  const DimBindings dims = {{"N", batches}, {"S", length}};
  for (const DType dtype : {bf16, f16})  // a GPU sums in f32 and rounds once
    CHECK(square_temporaries(gpu_program(build({.mask = Mask::bias_shared}, dtype)), dims,
                             heads * length * length + 1) == "");
  Graph g{"largest"};
  const Dim N{"N"}, S{"S"}, h{"h", heads}, d{"d", 4};
  const Tensor q = g.input("q", f32, {N, h, S, d});
  const Tensor w = matmul(q, q.transpose(-2, -1)).softmax(-1);
  g.output("y", matmul(w, q));
  g.output("most", w.max(0));
  CHECK(largest(g.finish()) != "");
}
