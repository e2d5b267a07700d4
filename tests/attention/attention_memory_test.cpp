#include <catch2/catch.hpp>

#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "passes/memory/memory_plan.h"
#include "runtime/compile.h"
#include "tests/attention/attention_search.h"
#include "tests/attention/variants/variant.h"
#include "tests/support/goldens/golden.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

Program program_of(const ir::Graph& graph, AttentionFusion attention) {
  return lower_cpu(ir::run_pipeline(graph, ir::default_pipeline()).graph, unnamed_cpu(), {.attention = attention});
}

void check_linear(const Program& program) {
  std::int64_t before = 0;
  for (std::int64_t size = 256; size <= 16384; size *= 2) {
    const DimBindings dims = {{"N", 1}, {"S", size}, {"B", 1}};
    const std::int64_t arena = plan_memory(program, dims, 2).arena_bytes;
    INFO("S " << size << " arena " << arena << " before " << before);
    if (before) CHECK(static_cast<double>(arena) < 2.1 * static_cast<double>(before));
    before = arena;
    for (const ProgramBuffer& buffer : program.buffers) CHECK(buffer.elements.evaluate(dims) < size * size);
  }
}

void check_linear(const ir::Graph& graph) {
  check_linear(program_of(graph, AttentionFusion::required));
  check_linear(
      lower_gpu(ir::run_pipeline(graph, ir::default_pipeline()).graph, {.attention = AttentionFusion::required}));
}

}  // namespace

TEST_CASE("attention memory grows linearly with the length, forward and backward, on CPUs and GPUs") {
  check_linear(build({.layout = Layout::split, .mask = Mask::causal_fill}));
  check_linear(build({.layout = Layout::grouped_expand, .mask = Mask::causal_where}));
  Graph g{"forward"};
  const Dim N{"N"}, S{"S"}, h{"h", 2}, d{"d", 8};
  const Tensor q = g.input("q", f32, {N, h, S, d});
  g.output("y", matmul(matmul(q, q.transpose(-2, -1)).softmax(-1), q));
  check_linear(g.finish());
}

TEST_CASE("fused attention gives the same bits for any number of threads") {
  for (const PatternVariant& s :
       {PatternVariant{.layout = Layout::split, .mask = Mask::causal_fill},
        PatternVariant{.layout = Layout::grouped_repeat, .mask = Mask::alibi, .extra = Extra::dropout},
        PatternVariant{.layout = Layout::split, .mask = Mask::bias_shared},
        PatternVariant{.mask = Mask::bias_then_mask}, PatternVariant{.layout = Layout::flat}}) {
    INFO(s.name());
    const ir::Graph graph = build(s);
    const Tensors arguments = random_arguments(graph, {{"N", 3}, {"S", 131}});
    std::optional<Tensors> first;
    for (const int threads : {1, 2, 3, 7, 16}) {
      Executable executable = compile(graph, {.threads = threads, .cache = test::shared_kernels()});
      const Tensors found = run_with_states(executable, arguments);
      if (!first) first = found;
      for (const auto& [name, value] : *first) CHECK(same_bits(found.at(name), value));
    }
  }
}

TEST_CASE("every attention of the goldens is fused") {
  const auto folder = test::test_data("goldens");
  for (const char* name :
       {"attention_walkthrough", "encoder_decoder_pre_relu", "encoder_decoder_post_gelu",
        "encoder_decoder_post_relu_dv", "llama_attention", "einsum_attention", "attention_forms", "mask_edges"}) {
    INFO(name);
    const auto files = golden::load(folder, name);
    Graph g{name};
    golden::find_case(name).build(g, files, f32);
    CHECK_NOTHROW(program_of(g.finish(), AttentionFusion::required));
  }
}
