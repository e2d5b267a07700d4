#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/intrinsics/fast_math.h"
#include "tests/cuda/attention/attention_cases.h"
#include "tests/cuda/attention/forward_attention.h"
#include "tests/cuda/attention/wgmma_cases.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention backward by the warpgroups of sm_90a: the matmuls with known row reductions (dQ, dK, dV).
using namespace lathe;
using namespace lathe::test;

namespace {

const WgmmaCase cases[] = {
    {"causal by -1e9, heads side by side",
     {.layout = Layout::split, .mask = Mask::causal_fill, .types = Types::bf16},
     64,
     64},
    {"padding, across, wider values",
     {.mask = Mask::padding_bool, .extra = Extra::cross, .types = Types::f16},
     80,
     96,
     70},
    {"window, grouped heads", {.layout = Layout::grouped_expand, .mask = Mask::window, .types = Types::f16}, 16, 24},
    {"heads of 128, no mask", {.layout = Layout::length_first, .types = Types::f16}, 128, 128, 66},
    {"ALiBi, dropout, one head of keys",
     {.layout = Layout::one_key_head, .mask = Mask::alibi, .extra = Extra::dropout, .types = Types::bf16},
     16,
     16},
};

/// Queries [N, head, S]: not contiguous along the dim that tensor cores reduce.
ir::Graph queries_across(std::int64_t head) {
  Graph g{"across"};
  const Dim N{"N"}, S{"S", 136};
  const Tensor q = g.input("q", bf16, {N, head, S}), k = g.input("k", bf16, {N, S, head}),
               v = g.input("v", bf16, {N, S, head});
  const Tensor y = matmul(matmul(k, q).transpose(-2, -1).softmax(-1), v);
  g.output("y", y);
  const auto gradients = grad((y * g.input("weight", bf16, y.shape())).sum(), {q, k, v});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

/// Causal attention with softmax in f32 and a loss whose gradient needs the result, as in every model.
ir::Graph with_sums_from_results() {
  Graph g{"dots"};
  const Dim N{"N"}, h{"h", 2}, S{"S"}, head{"d", 16};
  const Tensor q = g.input("q", bf16, {N, h, S, head}), k = g.input("k", bf16, {N, h, S, head}),
               v = g.input("v", bf16, {N, h, S, head});
  const Tensor scores =
      where(g.causal_mask(S, S), matmul(q, k.transpose(-2, -1)), -std::numeric_limits<double>::infinity()).to(f32);
  const Tensor y = matmul(scores.softmax(-1).to(bf16), v);
  g.output("y", y);
  const auto gradients = grad((y * y * g.input("weight", bf16, y.shape())).sum(), {q, k, v});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

ir::Graph graph_of(const WgmmaCase& c) { return attention_with_gradients(c.variant, c.depth, c.values); }

}  // namespace

TEST_CASE(
    "attention backward by warpgroups: masks, layouts, head sizes, ragged tiles, few rows, in the kernel "
    "interpreter") {
  check_cases(cases, attention_with_gradients, columns_by_wgmma);
  for (const WgmmaCase& c : cases) CHECK(outputs_of_rows_by_wgmma(fused_by_wgmma(graph_of(c))));
}

TEST_CASE("attention backward by warpgroups: non-contiguous queries, a bias that heads share") {
  const ir::Graph graphs[] = {
      queries_across(64),
      attention_with_gradients({.layout = Layout::split, .mask = Mask::bias_shared, .types = Types::bf16}, 16, 16)};
  for (const ir::Graph& graph : graphs) {
    const ProgramInterpreter program = fused_by_wgmma(graph);
    REQUIRE(columns_by_wgmma(program));
    check_attention(graph, random_arguments(graph, {{"N", 1}, {"S", 136}}), program);
    for (const kernel::Kernel& kernel : program.program().kernels)
      if (kernel.name.find("attention_outer_reductions") != std::string::npos)
        CHECK(std::count(kernel.notes.begin(), kernel.notes.end(),
                         "not by warpgroups: it sums over outer dims, tile by tile") == 1);
  }
}

TEST_CASE("attention backward by warpgroups: with row sums from the result, no other kernel recomputes scores") {
  const ir::Graph graph = with_sums_from_results();
  const ProgramInterpreter program = fused_by_wgmma(graph);
  REQUIRE(gradients_by_wgmma(program));
  for (const kernel::Kernel& kernel : program.program().kernels) {
    INFO(kernel.name);
    const bool exponentiates = std::any_of(kernel.values.begin(), kernel.values.end(), [](const auto& in) {
      return kernel::record_of(in) == &kernel::fast_exp_record;
    });
    CHECK(exponentiates == (kernel.name.find("by_wgmma") != std::string::npos));
  }
  for (const std::int64_t length : {1, 70, 150})
    check_attention(graph, random_arguments(graph, {{"N", 1}, {"S", length}}), program);
  // A row that sees one key has that key's value for any query and key. The gradients of query and key are then
  // differences of equal sums.
  const Tensors one_key = program.run(random_arguments(graph, {{"N", 3}, {"S", 1}}));
  for (const char* gradient : {"grad0", "grad1"})
    for (std::int64_t i = 0; i < one_key.at(gradient).numel(); ++i)
      CHECK(std::abs(one_key.at(gradient).get(i)) <= 1e-5);
}

TEST_CASE("attention backward by warpgroups: the CUDA text is deterministic, close to the unfused graph") {
  check_cuda_text(cases, attention_with_gradients, 131, 1);
}

TEST_CASE(
    "attention backward by warpgroups: rows are skipped if that does not change the result, otherwise visited") {
  const ir::Graph graph = attention_with_gradients(causal_and_padded, 16, 16);
  const ProgramInterpreter program = fused_by_wgmma(graph);
  REQUIRE(columns_by_wgmma(program));
  // Rows that see no column weight all columns, including those beyond the diagonal: all rows; only the rows of the
  // first blocks.
  check_left_out(graph, program, {0, 300, 70}, {"k", "v", "weight"});
}

TEST_CASE("backward attention that does not suit warpgroups uses the path of all GPUs, with a reason") {
  const auto why_not = [](const ir::Graph& graph, bool rows_suit = false) {
    const ProgramInterpreter program = fused_by_wgmma(graph);
    CHECK_FALSE(columns_by_wgmma(program));
    CHECK((outputs_of_rows_by_wgmma(program) != nullptr) == rows_suit);
    std::string said;
    for (const kernel::Kernel& kernel : program.program().kernels)
      if (kernel.name.find("attention_columns") != std::string::npos)
        for (const std::string& note : kernel.notes)
          if (note.starts_with("not by warpgroups: ")) said += note;
    return said;
  };
  using Catch::Contains;
  CHECK_THAT(why_not(attention_with_gradients({.types = Types::bf16}, 256, 64)),
             Contains("sums over rows of 64, 256 elements, where registers have room for 256 in all"));
  CHECK_THAT(why_not(attention_with_gradients({.types = Types::bf16}, 12, 16)),
             Contains("are computed, or no boxes that TMA copies"));
  CHECK_THAT(why_not(attention_with_gradients({.scale = Scale::on_queries, .types = Types::bf16}, 16, 16), true),
             Contains("are computed, or no boxes that TMA copies"));
  CHECK_THAT(why_not(queries_across(128), true), Contains("are not contiguous along the depth"));
  for (const AttentionCase& c : attention_cases()) {
    INFO(c.name);
    CHECK_FALSE(columns_by_wgmma(fused_by_wgmma(c.graph)));  // rows of 8 bytes, f32
  }
}

TEST_CASE("attention backward by warpgroups compiles to wgmma without spills, within the register limit") {
  std::vector<kernel::Kernel> kernels;
  for (const auto& [depth, values] : {std::pair{64, 64}, {128, 128}, {192, 64}})
    for (const Mask mask : {Mask::none, Mask::causal_fill, Mask::window}) {
      const ProgramInterpreter program = fused_by_wgmma(
          attention_with_gradients({.layout = Layout::split, .mask = mask, .types = Types::bf16}, depth, values));
      kernels.push_back(*columns_by_wgmma(program));
      kernels.push_back(*outputs_of_rows_by_wgmma(program));
    }
  check_resources(kernels);
}
